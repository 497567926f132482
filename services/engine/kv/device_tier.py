"""The pool as a tier: which of the blocks that prompts need are there, and why others are not."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Set as AbstractSet

from services.engine.kv.figures import TierFigures
from services.engine.sequence import Sequence
from services.shared.stream.events import CacheMiss


class DeviceTier:
    """Counts each sequence once, when it first gets its place. For the step loop's thread.

    A block that was fetched for a sequence is a miss here and a hit of the tier it came from; one
    that gave way again before its sequence had a place is a hit there and computed all the same.

    Args:
        size: tokens of a block.
        memory: addresses that are remembered of blocks that gave way.
    """

    def __init__(self, figures: TierFigures, size: int, memory: int) -> None:
        self._figures = figures
        self._size = size
        self._memory = memory
        self._evicted: OrderedDict[bytes, None] = OrderedDict()

    def evicted(self, address: bytes) -> None:
        """A block of the pool gives way."""
        self._evicted[address] = None
        self._evicted.move_to_end(address)
        if len(self._evicted) > self._memory:
            self._evicted.popitem(last=False)

    def filled(self, sequence: Sequence, indices: range) -> None:
        """What is computed is no find."""

    def placed(self, sequence: Sequence, found: int) -> None:
        """Also notes in the sequence why the first block that it computes was not found."""
        if sequence.preemptions or not sequence.generation.cache.read:
            return
        usable = sequence.usable_addresses(self._size)
        self._count(usable, found, sequence.fetched.keys())
        if found == len(usable):
            sequence.cache_miss = None
        elif sequence.cache_miss is None:
            sequence.cache_miss = self._cause(usable[found])

    def _count(self, usable: list[bytes], found: int, fetched: AbstractSet[bytes]) -> None:
        missing = [address for address in usable[:found] if address in fetched] + usable[found:]
        self._figures.hit(len(usable) - len(missing), 0)
        for cause, blocks in Counter(map(self._cause, missing)).items():
            self._figures.miss(cause, blocks)

    def _cause(self, address: bytes) -> CacheMiss:
        return CacheMiss.EVICTED if address in self._evicted else CacheMiss.ABSENT
