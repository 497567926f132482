"""What went through a router, in plain numbers."""

from __future__ import annotations

from enum import StrEnum

from services.shared.errors import Code
from services.shared.histogram import WAIT_S, Histogram


class End(StrEnum):
    """How a generation ended. Refused: with an error, and it never had a place."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUSED = "refused"


class LegCause(StrEnum):
    """Why a generation was sent to a replica."""

    NEW = "new"
    FAILED = "failed"
    """The replica before failed it."""
    FULL = "full"
    """The replica before did not take it."""
    MOVED = "moved"
    """It was taken from the replica before."""


class PrefillEnd(StrEnum):
    """What became of a prompt that another replica was to compute."""

    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    """Nobody needed it any more."""


class RelayFigures:
    """Counts since the start.

    Attributes:
        started: generations that came; what of them has not ended, the relay knows.
        errors: that callers were told, by end and code; sum up to those failed and refused.
        queue_seconds: from a generation's arrival to its first place.
        setbacks: of replicas that failed a generation or did not take it.
        continuations: legs of generations that had been accepted before.
        relayed_tokens: of outputs.
    """

    def __init__(self) -> None:
        self.started = 0
        self.ended = dict.fromkeys(End, 0)
        self.errors = {(end, code): 0 for end in (End.FAILED, End.REFUSED) for code in Code}
        self.queue_seconds = Histogram(WAIT_S)
        self.legs = dict.fromkeys(LegCause, 0)
        self.setbacks = dict.fromkeys(Code, 0)
        self.continuations = 0
        self.prefills = dict.fromkeys(PrefillEnd, 0)
        self.relayed_tokens = 0

    def leg(self, cause: LegCause, waited_s: float, *, again: bool) -> None:
        """A generation is sent to a replica.

        Args:
            cause: why.
            waited_s: since it came.
            again: it had been accepted before.
        """
        self.legs[cause] += 1
        self.continuations += again
        if cause is LegCause.NEW:
            self.queue_seconds.note(waited_s)

    def end(self, end: str, *, had_place: bool) -> None:
        """A generation has ended; see `Outcome.end`."""
        kind, _, why = end.partition(": ")
        if kind == "failed":
            self.fail(Code[why.upper()], had_place=had_place)
        else:
            self.ended[End.CANCELLED if kind == "cancelled" else End.FINISHED] += 1

    def fail(self, code: Code, *, had_place: bool) -> None:
        """A generation ended with an error."""
        end = End.FAILED if had_place else End.REFUSED
        self.ended[end] += 1
        self.errors[end, code] += 1
