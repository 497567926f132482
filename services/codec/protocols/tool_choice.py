"""Which tools may be called: what protocols say, checked against the tools there are."""

from __future__ import annotations

from collections.abc import Sequence

from services.codec.conversation import Tool, ToolChoice, ToolMode
from services.codec.protocols.fields import Value
from services.shared.errors import InvalidRequest


def checked(choice: ToolChoice, tools: Sequence[Tool], *, given: bool, field: str) -> ToolChoice:
    """A choice that the tools allow.

    Args:
        choice: as it was asked for.
        tools: those that can be called.
        given: whether the request speaks of tools at all, of which none may be left.
        field: names the choice in errors.
    """
    if not tools:
        if choice.mode is ToolMode.REQUIRED and (choice.names or not given):
            raise InvalidRequest(f"{field} needs tools", field=field)
        return ToolChoice(ToolMode.NONE)
    known = {tool.name for tool in tools}
    for name in choice.names:
        if name not in known:
            shown = Value(name, field).shown()
            raise InvalidRequest(f"{field} must name one of the tools, got {shown}", field=field)
    return choice
