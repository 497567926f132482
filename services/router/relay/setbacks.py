"""What went wrong with one generation since its last token."""

from __future__ import annotations

from services.router.relay.giving_up import last_of
from services.router.relay.leg import Leg
from services.shared.stream.events import Failed


class Setbacks:
    """Tells where it should not go again yet, and why it had to leave.

    Attributes:
        avoid: replicas that have lost it, by name and epoch.
        fruitless: replicas in a row that failed it without bringing a token.
        cause: the last failure; None while there was none.
    """

    __slots__ = ("avoid", "cause", "fruitless")

    def __init__(self) -> None:
        self.avoid: frozenset[tuple[str, int]] = frozenset()
        self.fruitless = 0
        self.cause: Failed | None = None

    def avoiding(self, leg: Leg) -> frozenset[tuple[str, int]]:
        """What is to be avoided if it leaves where it is now."""
        return (frozenset() if leg.begun else self.avoid) | {leg.place}

    def left(self, leg: Leg) -> None:
        """It was taken away from a replica."""
        self.avoid = self.avoiding(leg)

    def lost(self, leg: Leg, failed: Failed) -> Failed:
        """A replica failed it; returns the cause to be told."""
        self.left(leg)
        self.fruitless = 0 if leg.begun else self.fruitless + 1
        self.cause = last_of(None if leg.begun else self.cause, failed)
        return self.cause
