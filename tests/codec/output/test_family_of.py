"""A model's family shows in its template and in its vocabulary."""

from __future__ import annotations

import pytest

from services.codec.output.families import HERMES, LLAMA3, PLAIN, SMOLLM2, family_of
from services.codec.output.markers import Markers


@pytest.mark.parametrize(
    ("template", "tokens", "name"),
    [
        ("... <tool_call> ... <think> ...", (), "hermes"),
        ("... <tool_call> <function= ... <think>", ("<tool_call>",), "qwen3-coder"),
        ("... <tool_call> <arg_key> ...", (), "glm"),
        ("... <|python_tag|> ...", (), "llama3"),
        ("...", ("[TOOL_CALLS]", "[INST]"), "mistral"),
        ("... <|tool_calls_section_begin|> ...", (), "kimi-k2"),
        ("... <｜tool▁calls▁begin｜> ... ```json ...", (), "deepseek-v3"),  # noqa: RUF001 so spelled
        ("... <｜tool▁calls▁begin｜> ...", (), "deepseek-v3.1"),  # noqa: RUF001 so spelled
        ("... <|channel|> ...", (), "harmony"),
        ("...", ("<|tool_call>", "<tool_call|>"), "gemma4"),
        ("...", (), "plain"),
    ],
)
def test_family_is_found(template: str, tokens: tuple[str, ...], name: str) -> None:
    assert family_of(template, tokens, knows_tools=True).name == name


def test_model_without_a_word_for_thinking_does_not_think() -> None:
    assert family_of("<tool_call>", (), knows_tools=True).thinking is None
    assert family_of("<tool_call>", ("<think>",), knows_tools=True) is HERMES


def test_template_without_tools_is_told_of_them_in_text() -> None:
    assert family_of("...", (), knows_tools=False) is SMOLLM2
    assert family_of("... <tool_call> <think>", (), knows_tools=False).tool_text is not None
    assert PLAIN.tool_text is None
    assert LLAMA3.tool_text is None


def test_no_marker_may_begin_another() -> None:
    with pytest.raises(ValueError, match="'<a' begins another marker"):
        Markers(["<a>", "<a"])
