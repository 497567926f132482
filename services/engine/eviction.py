"""The order in which cached blocks give way: what is pinned goes last, tenants keep a share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from itertools import chain, count
from operator import itemgetter
from typing import Generic, TypeVar

PINNED_SHARE = 4
"""One block in so many may be pinned, so that pinning cannot take a tier from others."""

TENANTS_SHARE = 2
"""One block in so many is kept for tenants, each with as many, so that none floods the others."""

Name = TypeVar("Name", bound=Hashable)


class EvictionOrder(Generic[Name]):
    """Cached blocks, the one used longest ago first; then those that are pinned, likewise.

    What a tenant has within its share gives way only when nothing else is left. A block may be
    pinned while it is not cached.

    Args:
        blocks: of the tier. A part of them may be pinned: of more, the one pinned longest ago is
            pinned no longer.
    """

    def __init__(self, blocks: int) -> None:
        self._most = blocks // PINNED_SHARE
        self._tenants_blocks = blocks // TENANTS_SHARE
        self._turns = count()
        self._pins: OrderedDict[Name, None] = OrderedDict()
        self._plain: OrderedDict[Name, str] = OrderedDict()
        self._of_tenant: dict[str, OrderedDict[Name, int]] = {}
        self._kept: OrderedDict[Name, str] = OrderedDict()

    def __iter__(self) -> Iterator[Name]:
        """The next to give way first; those behind it by their last use."""
        first = self._next()
        if first is not None:
            yield first
            yield from (block for block in chain(self._plain, self._kept) if block != first)

    def __len__(self) -> int:
        return len(self._plain) + len(self._kept)

    def is_pinned(self, block: Name) -> bool:
        return block in self._pins

    def pin(self, block: Name) -> None:
        """Pins a block, or notes that it is used again."""
        self._pins[block] = None
        self._pins.move_to_end(block)
        if block in self._plain:
            self._kept[block] = self._remove_plain(block)
        if len(self._pins) > self._most:
            self.unpin(next(iter(self._pins)))

    def add(self, block: Name, tenant: str = "") -> None:
        """The block is cached from now on, and the last to give way of its kind."""
        if block in self._pins:
            self._kept[block] = tenant
        else:
            self._add_plain(block, tenant)

    def remove(self, block: Name) -> str:
        """The block is in use again; gives whose it was."""
        return self._kept.pop(block) if block in self._kept else self._remove_plain(block)

    def take(self) -> Name:
        """The next to give way; `unpin` it when its content is gone."""
        block = self._next()
        if block is None:
            raise KeyError("nothing is cached")
        self.remove(block)
        return block

    def unpin(self, block: Name) -> None:
        """Pins it no longer, if it was."""
        self._pins.pop(block, None)
        if block in self._kept:
            self._add_plain(block, self._kept.pop(block))

    def _next(self) -> Name | None:
        if not self._plain:
            return next(iter(self._kept), None)
        oldest, tenant = next(iter(self._plain.items()))
        share = self._tenants_blocks // len(self._of_tenant)
        if len(self._of_tenant[tenant]) > share:
            return oldest
        firsts = (next(iter(own.items())) for own in self._of_tenant.values() if len(own) > share)
        return min(firsts, key=itemgetter(1), default=(oldest, 0))[0]

    def _add_plain(self, block: Name, tenant: str) -> None:
        self._plain[block] = tenant
        self._of_tenant.setdefault(tenant, OrderedDict())[block] = next(self._turns)

    def _remove_plain(self, block: Name) -> str:
        tenant = self._plain.pop(block)
        own = self._of_tenant[tenant]
        del own[block]
        if not own:
            del self._of_tenant[tenant]
        return tenant
