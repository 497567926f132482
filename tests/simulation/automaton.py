"""Five states that stand for a grammar: what may follow depends on all that came."""

from __future__ import annotations

from services.shared.stream.generation import Constraint, ConstraintKind

STATES = 5


class Automaton:
    """Accepts a word once it has `length` tokens and is in its last state. An engine's Matcher."""

    def __init__(self, length: int) -> None:
        self._left = length
        self._state = 0

    @classmethod
    def of(cls, constraint: Constraint | None) -> Automaton | None:
        return None if constraint is None else cls(int(constraint.source))

    @property
    def complete(self) -> bool:
        return self._left <= 0 and self._state == STATES - 1

    def allows(self, token_id: int) -> bool:
        return token_id % 3 != self._state % 3

    def allowed(self) -> bytes:
        raise NotImplementedError("the simulated runner asks token by token")

    def accept(self, token_id: int) -> None:
        if not self.allows(token_id):
            raise ValueError(f"token {token_id} is not allowed in state {self._state}")
        self._state = (2 * self._state + token_id + 1) % STATES
        self._left -= 1


def word_of(length: int) -> Constraint:
    """The constraint of words that have at least `length` tokens."""
    return Constraint(ConstraintKind.REGEX, str(length))
