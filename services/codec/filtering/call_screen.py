"""Tool calls on their way out past a filter, which looks at their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from services.codec.events import ToolArguments, ToolEnd, ToolEvent, ToolStart
from services.codec.filtering.screen import Screen


class CallScreen:
    """The calls of one output. A call that is blocked ends, with what was told of it.

    Args:
        new: makes the screen of one call's arguments.
    """

    def __init__(self, new: Callable[[], Screen]) -> None:
        self._new = new
        self._screen = new()
        self._fragments = ""
        self._shown = 0

    @property
    def rule(self) -> str | None:
        return self._screen.rule

    def push(self, event: ToolEvent) -> list[ToolEvent]:
        """What may go out now."""
        match event:
            case ToolStart():
                self._screen, self._fragments, self._shown = self._new(), "", 0
                return [event]
            case ToolArguments():
                self._fragments += event.fragment
                told = self._told(event, self._screen.taken(event.fragment))
                return told if self.rule is None else [*told, self._cut(event, self._fragments)]
            case ToolEnd():
                return self._ended(event)

    def _ended(self, end: ToolEnd) -> list[ToolEvent]:
        """What no fragment told is looked at, too: some protocols show it."""
        count = self._screen.taken(end.arguments[len(self._fragments) :])
        count += self._screen.paused()
        fragments = ToolArguments(index=end.index, fragment="", choice=end.choice)
        told = self._told(fragments, count)
        return [*told, end if self.rule is None else self._cut(fragments, end.arguments)]

    def _told(self, event: ToolArguments, count: int) -> list[ToolEvent]:
        begin, self._shown = self._shown, self._shown + count
        fragment = self._fragments[begin : self._shown]
        return [replace(event, fragment=fragment)] if fragment else []

    def _cut(self, event: ToolArguments, arguments: str) -> ToolEnd:
        return ToolEnd(
            index=event.index,
            arguments=arguments[: self._shown],
            valid=False,
            choice=event.choice,
        )
