"""The pool of KV blocks: which are free, owned or cached. It counts; it never touches tensors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from services.shared.stream.block_changes import BlockChanges


class OutOfBlocks(Exception):
    """More blocks are asked for than are free or cached."""


class BlockPool:
    """A fixed number of blocks of `size` tokens.

    A block is free, owned by one or more sequences, or cached: owned by none, its content known by
    an address. free + owned + cached == count, always.
    """

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.size = size
        self._free = list(range(count - 1, -1, -1))
        self._owners = [0] * count
        self._address_of: list[bytes | None] = [None] * count
        self._block_at: dict[bytes, int] = {}
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._changes: BlockChanges | None = None

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def cached(self) -> int:
        return len(self._cached)

    @property
    def available(self) -> int:
        """Blocks that `allocate` can give."""
        return len(self._free) + len(self._cached)

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.size)

    def match(self, addresses: Iterable[bytes]) -> list[int]:
        """Blocks of the longest known prefix of a chain of addresses, without owning them."""
        blocks = []
        for address in addresses:
            block = self._block_at.get(address)
            if block is None:
                break
            blocks.append(block)
        return blocks

    def own(self, blocks: Iterable[int]) -> None:
        """Adds an owner to each of these matched blocks."""
        for block in blocks:
            self._cached.pop(block, None)
            self._owners[block] += 1

    def allocate(self, number: int) -> list[int]:
        """Owned blocks of no content; takes free ones, then the cached ones used longest ago.

        Raises:
            OutOfBlocks: fewer are available; none is taken.
        """
        if number > self.available:
            raise OutOfBlocks
        blocks = [self._free.pop() if self._free else self._evict() for _ in range(number)]
        for block in blocks:
            self._owners[block] = 1
        return blocks

    def publish(self, block: int, address: bytes) -> None:
        """Makes an owned, full block findable; of blocks with equal content the first counts.

        The content of a full block is fixed, and so is its first address.
        """
        if self._address_of[block] is None and address not in self._block_at:
            self._block_at[address] = block
            self._address_of[block] = address
            if self._changes is not None:
                self._changes.store(address)

    def release(self, blocks: Sequence[int]) -> None:
        """Takes one owner off each block, in the order of a sequence.

        The end of a prefix is forgotten before its beginning, since it is of no use without.
        """
        for block in reversed(blocks):
            self._owners[block] -= 1
            if self._owners[block] > 0:
                continue
            if self._address_of[block] is None:
                self._free.append(block)
            else:
                self._cached[block] = None

    def flush(self) -> int:
        """Frees all cached blocks and tells how many they were."""
        flushed = len(self._cached)
        self._free += [self._evict() for _ in range(flushed)]
        return flushed

    def watch(self) -> list[bytes]:
        """All addresses that can be found; how they change is recorded from now on."""
        self._changes = BlockChanges()
        return list(self._block_at)

    def unwatch(self) -> None:
        """Records no more."""
        self._changes = None

    def take_changes(self) -> BlockChanges | None:
        """What changed since the last call, or since `watch`; None if nothing did."""
        changes = self._changes
        if not changes:
            return None
        self._changes = BlockChanges()
        return changes

    def _evict(self) -> int:
        block, _ = self._cached.popitem(last=False)
        address = self._address_of[block]
        if address is not None:
            del self._block_at[address]
            if self._changes is not None:
                self._changes.drop(address)
        self._address_of[block] = None
        return block
