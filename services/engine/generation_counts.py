"""How many generations came to an engine, and where they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """How a generation ended. Refused: it was not taken."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationCounts:
    """As of one moment: started == running + waiting + all that ended.

    Args:
        fetching: of those that wait, those whose blocks are on their way.
    """

    started: int = 0
    running: int = 0
    waiting: int = 0
    fetching: int = 0
    ended: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
