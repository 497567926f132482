"""What one replica has of one generation, as seen on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from services.shared.stream.generation import Generation

ASSUMED_OUTPUT_TOKENS = 512

Place = tuple[str, int]


@dataclass(slots=True)
class Sent:
    """A generation, or the prompt of one, that is at a replica.

    Args:
        left: its tokens there that are to be computed or to come.
        pending: of these, of its prompt.
        awaited: tokens of its prompt that another replica is to compute.
    """

    place: Place
    left: int
    pending: int
    awaited: int = 0
    begun: bool = False

    def bring(self, tokens: int) -> None:
        if not self.begun:
            self.begun = True
            self.left -= self.pending
            self.pending = 0
        self.left = max(0, self.left - tokens)

    def lose_prefill(self) -> None:
        """It computes its prompt itself."""
        if not self.begun:
            self.left += self.awaited
            self.pending += self.awaited
        self.awaited = 0


class Counts(NamedTuple):
    """Of all generations at one replica."""

    running: int
    outstanding_tokens: int
    pending_tokens: int

    def plus(self, sent: Sent) -> Counts:
        return Counts(
            self.running + 1,
            self.outstanding_tokens + sent.left,
            self.pending_tokens + sent.pending,
        )


NOTHING = Counts(0, 0, 0)


def sent_to(place: Place, generation: Generation, found: int, awaited: int = 0) -> Sent:
    """Args: found: tokens that it need not compute there; of these, `awaited` are not there yet."""
    pending = len(generation.prompt_ids) + len(generation.generated_ids) - found
    limit = generation.stopping.max_tokens
    given = len(generation.generated_ids)
    coming = ASSUMED_OUTPUT_TOKENS if limit is None else limit - given
    return Sent(place, pending + coming, pending, awaited)
