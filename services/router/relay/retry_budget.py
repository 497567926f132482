"""How often the fleet is asked again: a share of the traffic, so that retries cannot bury it."""

from __future__ import annotations

from dataclasses import dataclass

from services.shared.bounds import within


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRules:
    """Each new generation earns `share` continuations; up to `burst` are kept, from the start on.

    So the death of a replica with many generations is covered, and a fleet that fails everything
    is asked 1 + `share` times for each generation in the long run.
    """

    share: float = 0.2
    burst: int = 1000

    def __post_init__(self) -> None:
        within("share", self.share, 0, 10)
        within("burst", self.burst, 0, 1_000_000)


class RetryBudget:
    """Continuations that may be made after failures.

    Attributes:
        left: continuations that are there to be spent.
        refused: how often there were none.
    """

    def __init__(self, rules: RetryRules = RetryRules()) -> None:
        self._rules = rules
        self.left: float = rules.burst
        self.refused = 0

    def earn(self) -> None:
        """A new generation was taken."""
        self.left = min(self.left + self._rules.share, self._rules.burst)

    def spend(self) -> bool:
        """Takes one continuation; False where none is left."""
        if self.left < 1:
            self.refused += 1
            return False
        self.left -= 1
        return True
