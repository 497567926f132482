"""What went wrong with one generation since its last token."""

from __future__ import annotations

from services.router.relay.figures import LegCause, RelayFigures
from services.router.relay.giving_up import last_of
from services.router.relay.leg import Leg
from services.shared.errors import Code
from services.shared.stream.events import Failed


class Setbacks:
    """Tells where it should not go again yet, and why it had to leave.

    Args: figures: count what is lost.

    Attributes:
        avoid: replicas that have lost it, by name and epoch.
        fruitless: replicas in a row that failed it without bringing a token.
        cause: the last failure; None while there was none.
        leg_cause: why it will be sent to a replica.
    """

    __slots__ = ("_figures", "avoid", "cause", "fruitless", "leg_cause")

    def __init__(self, figures: RelayFigures) -> None:
        self._figures = figures
        self.leg_cause = LegCause.NEW
        self.avoid: frozenset[tuple[str, int]] = frozenset()
        self.fruitless = 0
        self.cause: Failed | None = None

    def avoiding(self, leg: Leg) -> frozenset[tuple[str, int]]:
        """What is to be avoided if it leaves where it is now."""
        return (frozenset() if leg.begun else self.avoid) | {leg.place}

    def left(self, leg: Leg) -> None:
        """It was taken away from a replica."""
        self.leg_cause = LegCause.MOVED
        self.avoid = self.avoiding(leg)

    def lost(self, leg: Leg, failed: Failed) -> Failed:
        """A replica failed it; returns the cause to be told."""
        self.left(leg)
        is_full = failed.code is Code.RESOURCE_EXHAUSTED
        self.leg_cause = LegCause.FULL if is_full else LegCause.FAILED
        self._figures.setbacks[failed.code] += 1
        self.fruitless = 0 if leg.begun else self.fruitless + 1
        self.cause = last_of(None if leg.begun else self.cause, failed)
        return self.cause
