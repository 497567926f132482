"""Says whether a world went wrong, and keeps the first thing that did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.history import History


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    time: float
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text} (at {self.time:.6f})"


class Judge:
    """Is told what broke; only the first breach is of use, since the rest may follow from it.

    Attributes:
        violation: the first breach.
        named: how often each replica was named in the log for what it did.
        seen: how often each thing happened that must happen in some world.
        stop: ends the world.
    """

    def __init__(self, time: Callable[[], float], history: History) -> None:
        self._time = time
        self.history = history
        self.violation: Violation | None = None
        self.seen: Counter[str] = Counter()
        self.named: Counter[str] = Counter()
        self.stop: Callable[[], None] = lambda: None

    def broken(self, rule: str, text: str) -> None:
        if self.violation is None:
            self.violation = Violation(self._time(), rule, text)
            self.history.note("violation", rule=rule, text=text)
            self.stop()

    def require(self, holds: bool, rule: str, text: Callable[[], str]) -> None:
        if not holds:
            self.broken(rule, text())

    def saw(self, what: str) -> None:
        self.seen[what] += 1
