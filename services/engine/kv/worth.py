"""Which blocks are worth writing: the beginnings of prompts, and what is used again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from services.engine.kv.tier import Tier
from services.engine.sequence import Sequence
from services.shared.stream.generation import Generation

KNOWN_BLOCKS = 65_536
KNOWN_S = 600.0
"""After this a block that is used again is offered again: the store may have dropped it."""


class Worth:
    """Remembers a bounded number of blocks that are stored. For the step loop's thread.

    Args:
        prefix_tokens: blocks of so many first tokens of a prompt are worth writing at once.
        size: tokens of a block.
        clock: seconds.
    """

    def __init__(
        self, prefix_tokens: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._prefix_tokens = prefix_tokens
        self._size = size
        self._clock = clock
        self._known: OrderedDict[bytes, float] = OrderedDict()

    def leading(self, generation: Generation) -> int:
        """How many first blocks of a prompt are worth writing as soon as they are computed."""
        first = max(self._prefix_tokens, generation.cache.pinned_tokens)
        return min(first, len(generation.prompt_ids)) // self._size

    def again(self, sequence: Sequence, found: int) -> list[int]:
        """Which of the first `found` blocks, which were there already, are worth writing now.

        What came from the store is there; what came from another engine counts as computed here.
        """
        now = self._clock()
        leading = self.leading(sequence.generation)
        worth = []
        for index, address in enumerate(sequence.full_addresses(self._size)[:found]):
            tier = sequence.fetched.get(address, Tier.DEVICE)
            if tier is Tier.SERVICE:
                self._note(address, now)
            elif self._known.get(address, 0.0) <= now and (index < leading or tier != Tier.PEER):
                worth.append(index)
        return worth

    def stored(self, addresses: Iterable[bytes]) -> None:
        """These blocks are in the store."""
        now = self._clock()
        for address in addresses:
            self._note(address, now)

    def forget(self) -> None:
        """Nothing is known to be in the store."""
        self._known.clear()

    def _note(self, address: bytes, now: float) -> None:
        self._known[address] = now + KNOWN_S
        self._known.move_to_end(address)
        if len(self._known) > KNOWN_BLOCKS:
            self._known.popitem(last=False)
