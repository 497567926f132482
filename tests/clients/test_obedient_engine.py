"""What the engine for round trips of tools says to which prompt."""

from __future__ import annotations

import pytest

from clients.obedient_engine import said

TOOL = '{"type": "function", "function": {"name": "read"}}'
ORDER = "Call read (path: /a b/c.txt) and tell me what it says."
CALL = '<tool_call>[{"name": "read", "arguments": {"path": "/a b/c.txt"}}]</tool_call>'


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("hi", "Hello, I am here."),
        (f"{TOOL} {ORDER}", CALL),
        (f'{TOOL} "{ORDER}"', CALL),
        (ORDER, "A title"),
        (f"{TOOL} {ORDER} {CALL} <tool_response>so\nit is</tool_response>", "It says SO\nIT IS"),
        (f"{TOOL} <tool_response>old</tool_response> {ORDER}", CALL),
    ],
)
def test_orders_are_followed_where_the_tool_is_there(prompt: str, expected: str) -> None:
    assert said(prompt) == expected
