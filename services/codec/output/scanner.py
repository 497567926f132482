"""Text that arrives in pieces, read by generators that wait where it ends."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from services.codec.output.markers import Markers

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Yields whenever it needs more text, and returns a T."""


class Scanner:
    """What was not read yet, and where it stands in the whole text.

    From `hold` to `let_go` text that was read is kept, so that it can be given back.
    """

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._start = 0
        self._held_from: int | None = None
        self._has_ended = False

    @property
    def position(self) -> int:
        """Characters read so far."""
        return self._start + self._at

    @property
    def is_over(self) -> bool:
        """Whether all was read and no more will come."""
        return self._has_ended and self._at == len(self._text)

    @property
    def rest(self) -> str:
        """What is there and unread."""
        return self._text[self._at :]

    def feed(self, text: str) -> None:
        keep = self._at if self._held_from is None else self._held_from - self._start
        self._text = self._text[keep:] + text
        self._start += keep
        self._at -= keep

    def end(self) -> None:
        self._has_ended = True

    def hold(self, position: int) -> None:
        """Keeps what is read from now on; `position` must not lie before what was read last."""
        self._held_from = position

    @property
    def is_holding(self) -> bool:
        return self._held_from is not None

    def held(self) -> str:
        """What was read since `hold`."""
        start = self.position if self._held_from is None else self._held_from
        return self._text[start - self._start : self._at]

    def let_go(self) -> None:
        self._held_from = None

    def skip(self, count: int) -> None:
        self._at += count

    def peek(self) -> Steps[str]:
        """The next character, unread; empty at the end."""
        while self._at == len(self._text) and not self._has_ended:
            yield
        return self._text[self._at : self._at + 1]

    def take(self) -> Steps[str]:
        """The next character; empty at the end."""
        char = yield from self.peek()
        self._at += len(char)
        return char

    def blanks(self, more: str = "") -> Steps[str]:
        """Reads over white space and the characters of `more`; gives the next one, unread."""
        while True:
            char = yield from self.peek()
            if not char or not (char.isspace() or char in more):
                return char
            self._at += 1

    def run(self, markers: Markers) -> Steps[tuple[str, str | None]]:
        """Text that is no part of a marker, and the marker after it where there is one.

        The marker is read, too. Both are empty at the end of everything.
        """
        while True:
            place = markers.find(self._text, self._at)
            if place is None or (place.marker is None and self._has_ended):
                safe = len(self._text)
            else:
                safe = place.start
            text = self._text[self._at : safe]
            self._at = safe
            if place is not None and place.marker is not None:
                self._at = place.end
                return text, place.marker
            if text or self.is_over:
                return text, None
            yield

    def until(self, markers: Markers, limit: int) -> Steps[tuple[str, str | None]]:
        """All text up to a marker; without one after `limit` characters or at the end."""
        text = ""
        while True:
            piece, marker = yield from self.run(markers)
            text += piece
            if marker is not None or len(text) > limit or self.is_over:
                return text, marker

    def reads(self, marker: str) -> Steps[bool]:
        """Reads the marker where it comes next; reads nothing where it does not."""
        while True:
            rest = self._text[self._at : self._at + len(marker)]
            if rest == marker:
                self._at += len(marker)
                return True
            if self._has_ended or not marker.startswith(rest):
                return False
            yield
