"""Text on its way out past a filter: what it does not clear is withheld."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from time import monotonic

from services.codec.filtering.content_filter import Blocked, OutputMatcher, Ruling
from services.codec.filtering.rule_name import rule_name
from services.codec.visible import Piece
from services.shared.errors import Unavailable

FAILED = "the content filter cannot be asked now, try again later"

_log = logging.getLogger(__name__)


class Screen:
    """One text. `rule` tells why it was blocked; then nothing more comes out.

    Args:
        matcher: looks at the text.
        limit_s: seconds that one look may take.
    """

    def __init__(self, matcher: OutputMatcher, limit_s: float) -> None:
        self._matcher = matcher
        self._limit_s = limit_s
        self._received = 0
        self._shown = 0
        self._is_paused = True
        self.rule: str | None = None

    def taken(self, text: str) -> int:
        """How many characters may go out now, of those that were withheld and of this text.

        Raises:
            Unavailable: the filter failed, and with it the answer.
        """
        if self.rule is not None or not text:
            return 0
        self._received += len(text)
        self._is_paused = False
        return self._cleared(lambda: self._matcher.push(text))

    def paused(self) -> int:
        """The same where the text ends, or something else comes before it goes on."""
        if self.rule is not None or self._is_paused:
            return 0
        self._is_paused = True
        return self._cleared(self._matcher.pause)

    def _cleared(self, ask: Callable[[], Ruling]) -> int:
        ruling = self._ruling(ask)
        if not self._shown <= ruling.upto <= self._received:
            _log.error("the content filter cleared what it had not read, or took something back")
            raise Unavailable(FAILED)
        if isinstance(ruling, Blocked):
            self.rule = rule_name(ruling.rule)
        count, self._shown = ruling.upto - self._shown, ruling.upto
        return count

    def _ruling(self, ask: Callable[[], Ruling]) -> Ruling:
        began = monotonic()
        try:
            ruling = ask()
        except Exception as error:  # noqa: BLE001 the boundary to code that is not ours
            _log.error("the content filter failed on an answer: %s", type(error).__name__)
            raise Unavailable(FAILED) from None
        if monotonic() - began > self._limit_s:
            _log.error("the content filter took more than %g s for a piece", self._limit_s)
            raise Unavailable(FAILED)
        return ruling


class PieceScreen:
    """Pieces of one kind of text."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._held: deque[Piece] = deque()

    @property
    def rule(self) -> str | None:
        return self._screen.rule

    def push(self, piece: Piece) -> list[Piece]:
        """What may go out now."""
        self._held.append(piece)
        return self._out(self._screen.taken(piece.text))

    def pause(self) -> list[Piece]:
        """What was withheld: something else comes, or nothing."""
        return self._out(self._screen.paused())

    def _out(self, count: int) -> list[Piece]:
        pieces: list[Piece] = []
        held = self._held
        while held and count >= len(held[0].text):
            pieces.append(held.popleft())
            count -= len(pieces[-1].text)
        if count:
            first, held[0] = _split(held[0], count)
            pieces.append(first)
        return pieces


def _split(piece: Piece, count: int) -> tuple[Piece, Piece]:
    """A marker that is spelled out has one place, at which it ends."""
    middle = min(piece.start + count, max(piece.start, piece.end - 1))
    return (
        Piece(piece.text[:count], piece.start, middle),
        Piece(piece.text[count:], middle, piece.end),
    )
