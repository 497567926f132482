"""One kind of text on its way out: stop strings end it, white space at its end waits."""

from __future__ import annotations

from dataclasses import dataclass

from services.codec.stops import Pass, StopMatcher, Stopped


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that goes out, and its place in the whole output."""

    text: str
    start: int
    end: int


class Visible:
    """Text whose place in the output goes with it.

    Args:
        matcher: finds stop strings, where there are any.
        include_stop: the stop string is shown, too.
        keeps_blanks: white space is shown at once; else when more text comes after it.
    """

    def __init__(
        self, matcher: StopMatcher | None, *, include_stop: bool, keeps_blanks: bool
    ) -> None:
        self._matcher = matcher
        self._include_stop = include_stop
        self._keeps_blanks = keeps_blanks
        self._blank = ""
        self._end = 0
        self._behind = 0
        self.stop: str | None = None

    def push(self, text: str, start: int, end: int) -> list[Piece]:
        """What may go out now. After a stop string there is nothing."""
        pieces: list[Piece] = []
        if start != self._end or end - start != len(text):
            # What does not follow on directly cannot complete a stop string.
            pieces = self._matched_to_end()
        if self.stop is not None:
            return pieces
        self._end = end
        if self._matcher is None:
            return pieces + self._out(text)
        self._behind += len(text)
        return pieces + self._taken(self._matcher.push(text))

    def finish(self) -> list[Piece]:
        """All that was withheld."""
        pieces = self._matched_to_end()
        blank, self._blank = self._blank, ""
        return [*pieces, self._piece(blank)] if blank else pieces

    def leave(self) -> list[Piece]:
        """Other text follows: what was withheld for a stop string; the white space is dropped."""
        pieces = self._matched_to_end()
        self._blank = ""
        return pieces

    def _matched_to_end(self) -> list[Piece]:
        if self._matcher is None or self.stop is not None:
            return []
        return self._taken(self._matcher.finish())

    def _taken(self, result: Pass | Stopped) -> list[Piece]:
        self._behind -= len(result.text)
        if isinstance(result, Pass):
            return self._out(result.text)
        self.stop = result.stop
        text, self._blank = self._blank + result.text, ""
        if self._include_stop:
            text += result.stop
            self._behind -= len(result.stop)
        return [self._piece(text)] if text else []

    def _out(self, text: str) -> list[Piece]:
        if not text:
            return []
        text, self._blank = self._blank + text, ""
        if not self._keeps_blanks:
            core = text.rstrip()
            text, self._blank = core, text[len(core) :]
        return [self._piece(text)] if text else []

    def _piece(self, text: str) -> Piece:
        end = self._end - self._behind - len(self._blank)
        return Piece(text, max(0, end - len(text)), end)
