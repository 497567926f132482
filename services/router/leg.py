"""The way of one generation to one replica."""

from __future__ import annotations

from services.router.replica import Replica
from services.shared.stream.events import Cancel, CancelReason
from services.shared.stream.generation import Generation

ASSUMED_OUTPUT_TOKENS = 512
"""What a generation without a limit is expected to bring, for balancing only."""


class Leg:
    """Keeps a replica's count of outstanding tokens while a generation is there.

    Attributes:
        cancel: cancels the generation at the replica; set once it was sent.
    """

    __slots__ = ("_left", "cancel", "replica", "routed")

    def __init__(self, replica: Replica, routed: str, expected_tokens: int) -> None:
        self.replica = replica
        self.routed = routed
        self.cancel: Cancel = _not_sent
        self._left = expected_tokens
        replica.outstanding_tokens += expected_tokens
        replica.assigned += 1

    def settle(self, tokens: int) -> None:
        """So many tokens are computed or have come."""
        if tokens > self._left:  # noqa: PLR1730  # a call to min costs as much as all of this
            tokens = self._left
        self._left -= tokens
        self.replica.outstanding_tokens -= tokens

    def end(self) -> None:
        """The generation is no longer there."""
        self.settle(self._left)


def expected_tokens(generation: Generation) -> int:
    """Tokens to compute and to generate, were nothing cached."""
    given = len(generation.generated_ids)
    limit = generation.stopping.max_tokens
    output = ASSUMED_OUTPUT_TOKENS if limit is None else limit - given
    return len(generation.prompt_ids) + given + output


def _not_sent(_: CancelReason) -> None:
    return
