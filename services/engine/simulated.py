"""A runner that computes nothing: its tokens are hashes and its steps take modelled time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from services.engine import sequence as state
from services.engine.runner import Draw
from services.engine.scheduler import Work
from services.engine.simulated_memory import SimulatedMemory
from services.shared.stream.events import Logprobs


@dataclass(frozen=True, kw_only=True, slots=True)
class CostModel:
    """Microseconds that a step takes: a constant, and one for each token computed."""

    step_us: float = 5000.0
    token_us: float = 500.0


@dataclass(frozen=True, slots=True)
class EndOfText:
    """The token that ends an output, and the output tokens before it."""

    token_id: int
    position: int


class SimulatedRunner:
    """Draws each token as a hash of the seed and of what its blocks hold: a hash of all before it.

    So a token that is lost, repeated or swapped, or a block of something else, changes all later
    ones. Where a grammar does not allow it, the next one that it allows takes its place.

    Args:
        vocabulary: the range that tokens are drawn from.
        memory: of the blocks.
        cost: how long a step takes.
        end: after how many tokens an output ends; None: only where its limit is.
    """

    def __init__(
        self,
        vocabulary: range,
        memory: SimulatedMemory,
        cost: CostModel,
        end: EndOfText | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._memory = memory
        self._cost = cost
        self._end = end

    drawn_ns = 0

    def warm_up(self) -> None:
        """There is nothing to warm."""

    def run(self, works: Sequence[Work]) -> list[Draw]:
        tokens = sum(work.count for work in works)
        for work in works:
            self._compute(work.sequence, work.count)
        draws = [self._draw(work.sequence) for work in works if work.draws]
        time.sleep((self._cost.step_us + self._cost.token_us * tokens) / 1e6)
        return draws

    def _compute(self, sequence: state.Sequence, count: int) -> None:
        memory, blocks, start = self._memory, sequence.blocks, sequence.computed
        hashed = memory.state(blocks, start - 1) if start else 0
        for index in range(start, start + count):
            hashed = crc32(sequence.tokens[index].to_bytes(4, "little"), hashed)
            memory.note(blocks, index, hashed)

    def _draw(self, sequence: state.Sequence) -> Draw:
        position = sequence.position
        state = self._memory.state(sequence.blocks, len(sequence.tokens) - 1)
        digest = crc32(b"%d %d %d" % (sequence.seed, position, state))
        token_id = self._vocabulary[digest % len(self._vocabulary)]
        if self._end is not None and position >= self._end.position:
            token_id = self._end.token_id
        if sequence.matcher is not None:
            token_id = _next_allowed(token_id, sequence.matcher.allowed())
        wanted = sequence.generation.output.logprobs
        return Draw(token_id, None if wanted is None else _certain(token_id, wanted))


def _next_allowed(token_id: int, allowed: bytes) -> int:
    """The first allowed token from `token_id` on, or else from 0 on."""
    bits = int.from_bytes(allowed, "little")
    later = bits >> token_id << token_id or bits
    return (later & -later).bit_length() - 1


def _certain(token_id: int, wanted: int) -> Logprobs:
    return Logprobs(
        chosen=[0.0],
        top_token_ids=[token_id] * wanted,
        top_logprobs=[0.0] * wanted,
    )
