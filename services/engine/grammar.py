"""What the engine knows of a grammar: a matcher that follows one output, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.shared.stream.generation import Constraint


class Matcher(Protocol):
    """Follows one output. Not for two threads at a time."""

    @property
    def complete(self) -> bool:
        """Whether no token may follow but one that ends the text."""

    def allowed(self) -> bytes:
        """Bit i % 8 of byte i // 8 tells whether token i may be next; at least one may.

        Raises:
            InvalidRequest: the constraint needs more work for one token than there is leave for.
        """

    def accept(self, token_id: int) -> None:
        """Goes on by one token.

        Raises:
            ValueError: the token is not allowed; from then on the matcher is of no use.
        """


class Grammars(Protocol):
    """Makes matchers. For one thread."""

    def matcher(
        self, constraint: Constraint, generated_ids: Sequence[int], tenant: str = ""
    ) -> Matcher:
        """A matcher that has accepted `generated_ids`; what it needs is kept for the tenant alone.

        Raises:
            InvalidRequest: the constraint cannot be compiled or allows nothing, or the outputs
                delivered before break it.
        """
