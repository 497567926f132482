"""The screens of one output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.codec.filtering.call_screen import CallScreen
from services.codec.filtering.content_filter import ContentFilter
from services.codec.filtering.json_escapes import JsonMatcher
from services.codec.filtering.screen import PieceScreen, Screen


@dataclass(frozen=True, kw_only=True, slots=True)
class Screens:
    """What is shown, what is thought, and what is called are texts of their own."""

    content: PieceScreen
    reasoning: PieceScreen
    calls: CallScreen

    @property
    def rule(self) -> str | None:
        """Why the output was blocked."""
        return self.content.rule or self.reasoning.rule or self.calls.rule


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenMaker:
    """Makes screens by the filter that is in force.

    Args:
        content_filter: gives it.
        limit_s: seconds that it may take for a piece of text.
    """

    content_filter: Callable[[], ContentFilter]
    limit_s: float

    def screens(self, *, is_json: bool) -> Screens:
        """`is_json`: what is shown is JSON."""
        content_filter = self.content_filter()

        def plain() -> Screen:
            return Screen(content_filter.output_matcher(), self.limit_s)

        def json() -> Screen:
            return Screen(JsonMatcher(content_filter.output_matcher()), self.limit_s)

        return Screens(
            content=PieceScreen(json() if is_json else plain()),
            reasoning=PieceScreen(plain()),
            calls=CallScreen(json),
        )
