"""Calls of a streamed answer as deltas."""

from __future__ import annotations

from typing import Any

from services.codec.events import ToolArguments, ToolEnd, ToolEvent, ToolStart
from services.codec.protocols.chat_completions.reply import (
    FUNCTION_CALL,
    call_head,
    custom_input,
    is_custom,
)
from services.codec.protocols.reply import Reply


class CallDeltas:
    """ID and name of each call once, then its arguments; a custom tool's text when it is whole."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._names: dict[tuple[int, int], str] = {}
        self._sent: dict[tuple[int, int], str] = {}

    def count(self, choice: int) -> int:
        return sum(1 for of, _ in self._names if of == choice)

    def deltas(self, event: ToolEvent) -> list[dict[str, Any]]:
        key = (event.choice, event.index)
        match event:
            case ToolStart():
                self._names[key], self._sent[key] = event.name, ""
                return self._start(event)
            case ToolArguments():
                return self._arguments(event, event.fragment)
            case ToolEnd():
                return self._end(event)

    def _start(self, start: ToolStart) -> list[dict[str, Any]]:
        if self._is_old:
            function = {"name": start.name, "arguments": ""}
            return [{"function_call": function}] if start.index == 0 else []
        told = {"index": start.index, **call_head(self._reply, start.call_id, start.name)}
        if self._is_custom(start):
            return [{"tool_calls": [told | {"custom": {"name": start.name, "input": ""}}]}]
        return [{"tool_calls": [told | {"function": {"name": start.name, "arguments": ""}}]}]

    def _arguments(self, event: ToolArguments | ToolEnd, fragment: str) -> list[dict[str, Any]]:
        self._sent[event.choice, event.index] += fragment
        if not fragment or self._is_custom(event):
            return []
        if self._is_old:
            return [{"function_call": {"arguments": fragment}}] if event.index == 0 else []
        return [{"tool_calls": [{"index": event.index, "function": {"arguments": fragment}}]}]

    def _end(self, end: ToolEnd) -> list[dict[str, Any]]:
        """What of the arguments was not told yet; no arguments are an empty object."""
        if self._is_custom(end):
            text = custom_input(end.arguments)
            return [{"tool_calls": [{"index": end.index, "custom": {"input": text}}]}]
        sent, arguments = self._sent[end.choice, end.index], end.arguments or "{}"
        return self._arguments(end, arguments[len(sent) :] if arguments.startswith(sent) else "")

    @property
    def _is_old(self) -> bool:
        return FUNCTION_CALL in self._reply.request.echo

    def _is_custom(self, event: ToolEvent) -> bool:
        name = self._names[event.choice, event.index]
        return not self._is_old and is_custom(self._reply.request.tools, name)
