"""A grammar of whole answers: reasoning, then text or calls as the model's family writes them."""

from __future__ import annotations

from collections.abc import Sequence

from services.codec.conversation import Tool
from services.codec.lark import ANY_TEXT, Lark, regex
from services.codec.output.family import Channels, Family
from services.codec.request import (
    Grammar,
    JsonObject,
    JsonSchema,
    OutputFormat,
    ReasoningMode,
    Regex,
)
from services.shared.errors import Unsupported

BLANK_LINES = r"/\n{0,2}/"

# What stands around the name of the tool where a call's arguments are not JSON.
_HEADS = {
    "qwen3-coder": ("<tool_call>\n<function=", ">\n"),
    "glm": ("<tool_call>", "\n"),
    "gemma4": ("<|tool_call>call:", "{"),
}


class AnswerGrammar:
    """Expressions for the parts of an answer.

    Args:
        tools: those that may be called; none where calls are not read.
        parallel: more than one call may be made.
        any_token: what any token of the vocabulary matches.
    """

    def __init__(
        self, lark: Lark, family: Family, tools: Sequence[Tool], *, parallel: bool, any_token: str
    ) -> None:
        self._lark = lark
        self._family = family
        self._tools = tools
        self._parallel = parallel
        self._any_token = any_token

    def thinking(self, mode: ReasoningMode, *, is_open: bool) -> str:
        """What may, or if the prompt left it open must, come before the answer."""
        markers = self._thinking_markers()
        if markers is None or (mode is ReasoningMode.OFF and not is_open):
            return ""
        opens, closes = markers
        thought = f"{self._lark.until('thought', closes)} {BLANK_LINES}"
        return thought if is_open else f"({self._lark.literal(opens)} {thought})?"

    def formatted(self, wanted: OutputFormat) -> str:
        """Text of a format, or calls instead."""
        answer = f"{self._answer_head()} {self._format(wanted)}"
        return f"{answer} | {self.calls()}" if self._tools and self._can_call() else answer

    def free(self) -> str | None:
        """Text, and calls after it; None where a grammar cannot tell them apart."""
        text = self._family.call_text
        if text is None or not self._tools:
            return None
        if self._family.channels is not None:
            return f"{self._answer_head()} {ANY_TEXT} | {self.calls()}"
        if not text.opens:
            return None
        without = self._lark.without("words", text.opens)
        return f"{without} | {self._lark.until('words', text.opens)} {self._bodies()}"

    def calls(self) -> str:
        """At least one call.

        Raises:
            Unsupported: no way is known in which the family writes calls.
        """
        text = self._family.call_text
        if text is not None:
            return f"{self._lark.literal(text.opens)} {self._bodies()}"
        if self._family.name not in _HEADS:
            raise Unsupported(
                "tool_choice must be auto or none for this model: it has no form of calls",
                field="tool_choice",
            )
        before, after = _HEADS[self._family.name]
        names = " | ".join(self._lark.literal(tool.name) for tool in self._tools)
        return (
            f"{self._lark.literal(before)} ({names}) {self._lark.literal(after)} {self._any_token}*"
        )

    def _can_call(self) -> bool:
        return self._family.call_text is not None or self._family.name in _HEADS

    def _bodies(self) -> str:
        """Calls without what opens them."""
        text = self._family.call_text
        if text is None:
            raise ValueError(f"family {self._family.name} has no text of calls")
        one = self._lark.rule("call", " | ".join(map(self._arguments, self._tools)))
        call = f"{one} {self._lark.literal(text.after)}"
        more = f"({self._lark.literal(text.joins)} {call})*" if self._parallel else ""
        return f"{call} {more} {self._lark.literal(text.closes)}"

    def _arguments(self, tool: Tool) -> str:
        """A call up to the end of its arguments."""
        text, calls = self._family.call_text, self._family.calls
        if text is None or calls is None:
            raise ValueError(f"family {self._family.name} has no text of calls")
        head = f"{text.before}{tool.name}{text.between}"
        written = self._lark.json_literal(head) if calls.is_bare else self._lark.literal(head)
        return f"{written} {self._lark.json(tool.schema, is_strict=tool.strict)}"

    def _format(self, wanted: OutputFormat) -> str:
        match wanted:
            case JsonObject():
                return self._lark.json({"type": "object"})
            case JsonSchema(schema):
                return self._lark.json(schema)
            case Regex(pattern):
                return regex(pattern)
            case Grammar(source):
                return self._lark.callers(source)

    def _thinking_markers(self) -> tuple[str, str] | None:
        channels = self._family.channels
        if channels is None:
            return self._family.thinking
        header = f"{channels.begins[-1]}{channels.thinking[0]}{channels.message}"
        return header, f"{channels.ends[0]}{channels.begins[0]}assistant"

    def _answer_head(self) -> str:
        channels: Channels | None = self._family.channels
        if channels is None:
            return ""
        return self._lark.literal(f"{channels.begins[-1]}final{channels.message}")
