"""What a generation may bring where versions of the model serve beside each other: one's output."""

from __future__ import annotations

from collections.abc import Sequence

from services.shared.stream.events import FinishReason
from services.shared.stream.generation import Generation
from tests.simulation.oracle import Oracle


class Oracles:
    """Those of all versions, until a token tells which one it is."""

    def __init__(
        self, generation: Generation, seed: int, context_length: int, versions: Sequence[str]
    ) -> None:
        self._left = [Oracle(generation, seed, context_length, version) for version in versions]

    def take(self, token: int) -> list[int]:
        """The tokens that were possible, if `token` is none of them."""
        tokens = [oracle.next() for oracle in self._left]
        if token not in tokens:
            return tokens
        drawn = zip(self._left, tokens, strict=True)
        self._left = [oracle for oracle, expected in drawn if expected == token]
        return []

    def end(self) -> FinishReason | None:
        """Why the output is complete now, if it is."""
        return self._left[0].end()
