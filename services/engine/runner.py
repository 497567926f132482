"""The seam between scheduling and computing: works in, drawn tokens out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.engine.scheduler import Work
from services.shared.stream.events import Logprobs


@dataclass(frozen=True, slots=True)
class Draw:
    """One drawn token, with its log-probabilities where they were asked for."""

    token_id: int
    logprobs: Logprobs | None = None


class Runner(Protocol):
    """Computes works. Running the same works again gives the same draws."""

    @property
    def drawn_ns(self) -> int:
        """Nanoseconds that all runs spent on drawing, as far as that is known."""

    def warm_up(self) -> None:
        """Makes the first real step as fast as any."""

    def run(self, works: Sequence[Work]) -> list[Draw]:
        """Computes all works; one draw for each work that `draws`, in their order."""
