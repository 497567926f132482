"""A runner that computes hashes where a model computes KV, and reads them back before it draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from services.engine import sequence as state
from services.engine.blocks import BlockPool
from services.engine.runner import Draw
from services.engine.scheduler import Work
from services.engine.stopping import Stopper
from services.shared.stream.events import Logprobs
from tests.simulation.automaton import Automaton
from tests.simulation.oracle import chained, drawn, start

Blocks = list[list[int | None]]


class KvRunner:
    """Keeps in each slot of each block the state of the chain up to that token.

    What a sequence reads must be what its own tokens make: a block that was freed too early, or
    that is known by a wrong address, holds something else.

    Args:
        pool: of the blocks.
        version: of the model.
        wrong: told when a sequence reads something else.

    Attributes:
        blocks: what they hold.
        tokens: that the last step computed.
    """

    drawn_ns = 0

    def __init__(
        self,
        pool: BlockPool,
        version: str,
        stopper: Stopper,
        wrong: Callable[[str], None],
    ) -> None:
        self._version = version
        self._size = pool.size
        self._stopper = stopper
        self._wrong = wrong
        self.blocks: Blocks = [[None] * pool.size for _ in range(pool.count)]
        self._chains: dict[int, list[int]] = {}
        self.tokens = 0

    def warm_up(self) -> None:
        """There is nothing to warm."""

    def run(self, works: Sequence[Work]) -> list[Draw]:
        self.tokens = sum(work.count for work in works)
        for work in works:
            self._compute(work.sequence, work.count)
        return [self._draw(work.sequence) for work in works if work.draws]

    def _chain(self, sequence: state.Sequence) -> list[int]:
        """The states after each token of the sequence."""
        chain = self._chains.setdefault(sequence.key, [])
        for token in sequence.tokens[len(chain) :]:
            before = chain[-1] if chain else start(sequence.generation, self._version)
            chain.append(chained(before, [token]))
        return chain

    def _compute(self, sequence: state.Sequence, count: int) -> None:
        chain = self._chain(sequence)
        for index in range(sequence.computed, sequence.computed + count):
            block, slot = divmod(index, self._size)
            self.blocks[sequence.blocks[block]][slot] = chain[index]

    def _draw(self, sequence: state.Sequence) -> Draw:
        chain = self._chain(sequence)
        read = [slot for block in sequence.blocks for slot in self.blocks[block]][: len(chain)]
        if read != chain:
            request_id = sequence.generation.request_id
            self._wrong(f"the blocks of {request_id} hold the content of another sequence")
        banned = self._stopper.banned(sequence)
        matcher = sequence.matcher
        automaton = matcher if isinstance(matcher, Automaton) else None
        token = drawn(chain[-1], sequence.seed, banned, automaton)
        return Draw(token, _told(token, sequence.generation.output.logprobs))


def _told(token: int, wanted: int | None) -> Logprobs | None:
    """Numbers by which the token can be told."""
    if wanted is None:
        return None
    return Logprobs(
        chosen=[-float(token)], top_token_ids=[token] * wanted, top_logprobs=[-1.0] * wanted
    )
