"""The pool of KV blocks: which are free, owned or cached. It counts; it never touches tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from services.engine.eviction import EvictionOrder
from services.shared.stream.block_changes import BlockChanges


class OutOfBlocks(Exception):
    """More blocks are asked for than are free or cached."""


class BlockPool:
    """A fixed number of blocks of `size` tokens.

    A block is free; owned by one or more sequences; leased: owned by none, and read or filled by a
    transfer; or cached: neither, its content known by an address. An owned block may be leased too,
    and stays as it is until both have ended. free + owned + leased + cached == count, always.

    Attributes:
        on_evict: called with a block and its address while its content still is there, before the
            block is reused.
    """

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.size = size
        self._free = list(range(count - 1, -1, -1))
        self._owners = [0] * count
        self._leases = [0] * count
        self._owned = self._leased = 0
        self.on_evict: Callable[[int, bytes], None] = _forgotten
        self._address_of: list[bytes | None] = [None] * count
        self._tenant_of = [""] * count
        self._block_at: dict[bytes, int] = {}
        self._cached: EvictionOrder[int] = EvictionOrder(count)
        self._changes: BlockChanges | None = None

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def owned(self) -> int:
        return self._owned

    @property
    def leased(self) -> int:
        return self._leased

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
            if not self._owners[block]:
                self._owned += 1
                if self._leases[block]:
                    self._leased -= 1
                else:
                    self._cached.remove(block)
            self._owners[block] += 1

    def lease(self, blocks: Iterable[int]) -> None:
        """Keeps each of these matched or owned blocks as it is, until `end_lease`."""
        for block in blocks:
            if not self._leases[block] and not self._owners[block]:
                self._cached.remove(block)
                self._leased += 1
            self._leases[block] += 1

    def allocate(self, number: int) -> list[int]:
        """Owned blocks of no content; takes free ones, then the cached ones used longest ago.

        Raises:
            OutOfBlocks: fewer are available; none is taken.
        """
        blocks = self._take(number)
        for block in blocks:
            self._owners[block] = 1
        self._owned += number
        return blocks

    def lease_blank(self, number: int) -> list[int]:
        """Leased blocks of no content, to be filled; as `allocate`."""
        blocks = self._take(number)
        for block in blocks:
            self._leases[block] = 1
        self._leased += number
        return blocks

    def publish(self, block: int, address: bytes, tenant: str = "") -> None:
        """Makes a full block findable that is owned or leased; of equal blocks the first counts.

        The content of a full block is fixed, and so are its first address and its tenant.
        """
        if self._address_of[block] is None and address not in self._block_at:
            self._block_at[address] = block
            self._address_of[block] = address
            self._tenant_of[block] = tenant
            if self._changes is not None:
                self._changes.store(address)

    def pin(self, block: int) -> None:
        """Lets other cached blocks give way before this one, if it can be found."""
        if self._address_of[block] is not None:
            self._cached.pin(block)

    def is_pinned(self, block: int) -> bool:
        """Whether others give way before it; true in `on_evict` still."""
        return self._cached.is_pinned(block)

    def tenant_of(self, block: int) -> str:
        """In whose share it is, if it can be found; true in `on_evict` still."""
        return self._tenant_of[block]

    def release(self, blocks: Sequence[int]) -> None:
        """Takes one owner off each block, in the order of a sequence.

        The end of a prefix is forgotten before its beginning, since it is of no use without.
        """
        for block in reversed(blocks):
            self._owners[block] -= 1
            if self._owners[block] > 0:
                continue
            self._owned -= 1
            if self._leases[block]:
                self._leased += 1
            else:
                self._let_go(block)

    def end_lease(self, blocks: Sequence[int]) -> None:
        """Takes one lease off each block, in the order of a sequence; see `release`."""
        for block in reversed(blocks):
            self._leases[block] -= 1
            if self._leases[block] or self._owners[block]:
                continue
            self._leased -= 1
            self._let_go(block)

    def audit(self) -> None:
        """Raises AssertionError unless each block is in one state and the counts are true."""
        states = [
            (self._owners[block] > 0, self._leases[block] > 0 and not self._owners[block])
            for block in range(self.count)
        ]
        owned, leased = (sum(column) for column in zip(*states, strict=True))
        idle = {block for block in range(self.count) if not any(states[block])}
        free, cached = set(self._free), set(self._cached)
        truths = (
            (owned, leased) == (self._owned, self._leased),
            min(*self._owners, *self._leases) >= 0,
            free.isdisjoint(cached) and free | cached == idle,
            len(free) == len(self._free),
            self.free + self.owned + self.leased + self.cached == self.count,
            all(self._address_of[block] is None for block in free),
            all(self._address_of[block] is not None for block in cached),
            all(self._address_of[block] == at for at, block in self._block_at.items()),
        )
        if not all(truths):
            raise AssertionError(f"the pool's books are wrong: {truths}")

    def flush(self) -> int:
        """Frees all cached blocks, which go nowhere, and tells how many they were."""
        flushed = len(self._cached)
        spill, self.on_evict = self.on_evict, _forgotten
        self._free += [self._evict() for _ in range(flushed)]
        self.on_evict = spill
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

    def _take(self, number: int) -> list[int]:
        if number > self.available:
            raise OutOfBlocks
        return [self._free.pop() if self._free else self._evict() for _ in range(number)]

    def _let_go(self, block: int) -> None:
        """Nobody uses it any more: its content can be found, or it has none."""
        if self._address_of[block] is None:
            self._free.append(block)
        else:
            self._cached.add(block, self._tenant_of[block])

    def _evict(self) -> int:
        block = self._cached.take()
        address = self._address_of[block]
        if address is not None:
            self.on_evict(block, address)
            del self._block_at[address]
            if self._changes is not None:
                self._changes.drop(address)
        self._address_of[block] = None
        self._cached.unpin(block)
        return block


def _forgotten(_block: int, _address: bytes) -> None:
    """What is evicted goes nowhere."""
