"""The order in which cached blocks give way: what is pinned goes last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from itertools import chain
from typing import Generic, TypeVar

PINNED_SHARE = 4
"""One block in so many may be pinned, so that pinning cannot take a tier from others."""

Name = TypeVar("Name", bound=Hashable)


class EvictionOrder(Generic[Name]):
    """Cached blocks, the one used longest ago first; then those that are pinned, likewise.

    A block may be pinned while it is not cached. At most `pins` are: of more, the one pinned
    longest ago is pinned no longer.
    """

    def __init__(self, pins: int) -> None:
        self._most = pins
        self._pins: OrderedDict[Name, None] = OrderedDict()
        self._plain: OrderedDict[Name, None] = OrderedDict()
        self._kept: OrderedDict[Name, None] = OrderedDict()

    def __iter__(self) -> Iterator[Name]:
        """The next to give way first."""
        return chain(self._plain, self._kept)

    def __len__(self) -> int:
        return len(self._plain) + len(self._kept)

    def is_pinned(self, block: Name) -> bool:
        return block in self._pins

    def pin(self, block: Name) -> None:
        """Pins a block, or notes that it is used again."""
        self._pins[block] = None
        self._pins.move_to_end(block)
        if block in self._plain:
            del self._plain[block]
            self._kept[block] = None
        if len(self._pins) > self._most:
            self.unpin(next(iter(self._pins)))

    def add(self, block: Name) -> None:
        """The block is cached from now on, and the last to give way of its kind."""
        (self._kept if block in self._pins else self._plain)[block] = None

    def remove(self, block: Name) -> None:
        """The block is in use again."""
        del (self._kept if block in self._kept else self._plain)[block]

    def take(self) -> Name:
        """The next to give way; `unpin` it when its content is gone."""
        return (self._plain or self._kept).popitem(last=False)[0]

    def unpin(self, block: Name) -> None:
        """Pins it no longer, if it was."""
        self._pins.pop(block, None)
        if block in self._kept:
            del self._kept[block]
            self._plain[block] = None
