"""The system text and messages of Messages as turns."""

from __future__ import annotations

from dataclasses import replace

from services.codec.conversation import Part, Role, Text, ToolCall, ToolResult, Turn
from services.codec.protocols.fields import Fields, Value, choice, fields, list_of
from services.codec.protocols.messages.blocks import parts_of, system_texts
from services.codec.protocols.tool_results import in_call_order

_ROLES = choice({"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM})

BETWEEN_SYSTEM_BLOCKS = "\n\n"

_Said = tuple[Role, list[Part]]


def turns_of(body: Fields) -> tuple[Turn, ...]:
    """Consecutive messages of one side are one turn; tool results are turns of their own."""
    turns = _system_turns(body)
    for role, parts in _merged(body.required("messages", list_of(_said, at_least=1))):
        results = [part for part in parts if isinstance(part, ToolResult)]
        rest = tuple(part for part in parts if not isinstance(part, ToolResult))
        turns += [Turn(Role.TOOL, (result,)) for result in results]
        if rest or (not results and role is not Role.SYSTEM):
            turns.append(Turn(role, rest))
    return in_call_order(turns)


def opened(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], bool]:
    """The turns, and whether the answer continues the last one: an assistant's beginning.

    White space at its end goes: the model would have to begin with what never follows a space.
    """
    last = turns[-1]
    if last.role is not Role.ASSISTANT or any(isinstance(part, ToolCall) for part in last.parts):
        return turns, False
    parts = list(last.parts)
    while parts and isinstance(end := parts.pop(), Text):
        if beginning := end.text.rstrip():
            kept = replace(last, parts=(*parts, Text(beginning)))
            return (*turns[:-1], kept), True
    return turns[:-1] or turns, False


def _system_turns(body: Fields) -> list[Turn]:
    """One text: its blocks' borders decide cache hits and are always the same."""
    joined = BETWEEN_SYSTEM_BLOCKS.join(body.optional("system", system_texts) or [])
    return [Turn(Role.SYSTEM, (Text(joined),))] if joined else []


def _said(value: Value) -> _Said:
    message = fields(value)
    role = message.required("role", _ROLES)
    if role is Role.SYSTEM:
        strings = message.required("content", system_texts)
        return role, [Text(BETWEEN_SYSTEM_BLOCKS.join(strings))] if strings else []
    return role, message.required("content", parts_of)


def _merged(said: list[_Said]) -> list[_Said]:
    merged: list[_Said] = []
    for role, parts in said:
        if merged and merged[-1][0] is role:
            merged[-1][1].extend(parts)
        else:
            merged.append((role, parts))
    return merged
