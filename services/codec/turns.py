"""A conversation in the shape that chat templates expect, every text of a caller passed on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from services.codec.conversation import (
    Conversation,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from services.codec.manners import Manners
from services.codec.output.families import PLAIN
from services.codec.output.family import Family
from services.codec.shaping import Placed, shaped
from services.shared.errors import InvalidRequest

MAX_DEPTH = 64
RESERVED = frozenset(
    {"messages", "tools", "add_generation_prompt", "continue_final_message"}
    | {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}
    | {"range", "dict", "namespace", "raise_exception", "strftime_now", "self", "loop", "caller"}
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

# What is done to each text of a caller; `field` names it in errors.
Passing = Callable[[str, str], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnStyle:
    """What a template wants.

    Args:
        as_parts: a message's text is a list of parts.
        manners: what it can show.
        family: knows the shape of call IDs, and how to tell of tools in text.
    """

    as_parts: bool = False
    manners: Manners = field(default_factory=Manners)
    family: Family = PLAIN


class TemplateTurns:
    """Makes a template's variables of a conversation.

    Args:
        passing: takes each text of a caller, keys of JSON included, and gives what is rendered.
        style: how the template wants them.
    """

    def __init__(self, passing: Passing, style: TurnStyle) -> None:
        self._passing = passing
        self._style = style

    def variables(self, conversation: Conversation, *, end: str) -> dict[str, Any]:
        """Messages, tools and the caller's own variables; `end` is added to the last text."""
        family, manners = self._style.family, self._style.manners
        turns = shaped(conversation, manners, family.tool_text)
        named = _named_calls(turns, family)
        messages = [self._said(placed.turn, f"messages[{placed.at}]", named) for placed in turns]
        if end:
            messages[-1]["content"] = self._content(messages[-1]["content"], end)
        own = self._own(conversation.rendering.template_kwargs)
        tools = [self._tool(tool, f"tools[{at}]") for at, tool in enumerate(conversation.tools)]
        return own | {"messages": messages, "tools": tools or None}

    def _said(self, turn: Turn, field: str, named: Mapping[str, ToolCall]) -> dict[str, Any]:
        for part in turn.parts:
            if isinstance(part, ToolResult):
                return self._result(part, field, named)
        return self._message(turn, field, named)

    def _message(self, turn: Turn, field: str, named: Mapping[str, ToolCall]) -> dict[str, Any]:
        parts = turn.parts
        message: dict[str, Any] = {"role": Role(turn.role).value}
        if turn.name is not None:
            message["name"] = self._passing(turn.name, f"{field}.name")
        texts = tuple(part for part in parts if isinstance(part, Text))
        message["content"] = self._content(self._joined(texts, field))
        reasoning = "\n".join(part.text for part in parts if isinstance(part, Reasoning))
        if reasoning:
            message["reasoning_content"] = self._passing(reasoning, f"{field}.reasoning_content")
        calls = [part for part in parts if isinstance(part, ToolCall)]
        if calls:
            message["tool_calls"] = [
                self._call(call, named[call.call_id], f"{field}.tool_calls") for call in calls
            ]
        return message

    def _result(
        self, result: ToolResult, field: str, named: Mapping[str, ToolCall]
    ) -> dict[str, Any]:
        call = named[result.call_id]
        message: dict[str, Any] = {
            "role": Role.TOOL.value,
            "tool_call_id": self._passing(call.call_id, f"{field}.tool_call_id"),
            "content": self._content(self._joined(result.parts, field)),
        }
        if call.name:
            message["name"] = self._passing(call.name, f"{field}.name")
        return message

    def _joined(self, texts: tuple[Text, ...], field: str) -> str:
        # How parts are joined decides which prompts share a prefix: it must never change.
        return self._passing("\n".join(part.text for part in texts), f"{field}.content")

    def _content(self, content: Any, more: str = "") -> Any:
        if isinstance(content, list):
            content = content[0]["text"]
        text = content + more
        return [{"type": "text", "text": text}] if self._style.as_parts else text

    def _call(self, call: ToolCall, named: ToolCall, field: str) -> dict[str, Any]:
        return {
            "id": self._passing(named.call_id, f"{field}.id"),
            "type": "function",
            "function": {
                "name": self._passing(call.name, f"{field}.function.name"),
                "arguments": self._passed(_arguments(call), f"{field}.function.arguments"),
            },
        }

    def _tool(self, tool: Tool, field: str) -> dict[str, Any]:
        function: dict[str, Any] = {"name": self._passing(tool.name, f"{field}.name")}
        if tool.description is not None:
            function["description"] = self._passing(tool.description, f"{field}.description")
        function["parameters"] = self._passed(tool.schema, f"{field}.parameters")
        return {"type": "function", "function": function}

    def _own(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        for name in kwargs:
            field = f"chat_template_kwargs.{name}"
            if name in RESERVED:
                raise InvalidRequest(f"{field} must not be set: the server sets it", field=field)
            if not _NAME.fullmatch(name):
                raise InvalidRequest(
                    f"chat_template_kwargs must have names of letters, digits and underscores, "
                    f"got {name!r}",
                    field="chat_template_kwargs",
                )
        return {
            name: self._passed(value, f"chat_template_kwargs.{name}")
            for name, value in kwargs.items()
        }

    def _passed(self, value: Any, field: str, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"{field} must nest at most {MAX_DEPTH} levels deep", field=field)
        if isinstance(value, str):
            return self._passing(value, field)
        if isinstance(value, Mapping):
            return {
                self._passing(str(key), field): self._passed(item, field, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._passed(item, field, depth + 1) for item in value]
        return value


def _named_calls(turns: Iterable[Placed], family: Family) -> dict[str, ToolCall]:
    """By the caller's ID the last call that has it, under the ID that the template is given.

    Results of calls that are not there have a call without a name.
    """
    named: dict[str, ToolCall] = {}
    for placed in turns:
        for part in placed.turn.parts:
            if isinstance(part, ToolCall):
                named[part.call_id] = _with_id(part, family, len(named))
            elif isinstance(part, ToolResult) and part.call_id not in named:
                named[part.call_id] = _with_id(ToolCall(part.call_id, "", ""), family, len(named))
    return named


def _with_id(call: ToolCall, family: Family, number: int) -> ToolCall:
    if family.call_id is None:
        return call
    return replace(call, call_id=family.call_id(call.name, number))


def check_text(text: str, field: str) -> None:
    """Refuses what no tokenizer takes."""
    if "\0" in text:
        raise InvalidRequest(f"{field} must not contain NUL", field=field)
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = f"U+{ord(text[error.start]):04X}"
        raise InvalidRequest(
            f"{field} must not contain the lone surrogate {shown}", field=field
        ) from error


def _arguments(call: ToolCall) -> Any:
    """The arguments as an object, which templates write as JSON, or else as they are."""
    try:
        value = json.loads(call.arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return call.arguments
    return value if isinstance(value, dict) else call.arguments


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
