"""Which replica has which KV blocks cached, as they tell it, and how much of a prompt that is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.router.chain import Chain, Layout
from services.router.demand import Demand
from services.router.status import Identity
from services.shared.stream.blocks import BlockEvents

MAX_BLOCKS = 4096
"""A prompt is followed so far; what is cached beyond changes no choice."""

MAX_TOLD_BLOCKS = 2**20
"""Blocks remembered of one replica, whatever it says that it has."""

TIDIED = 256
"""Leftovers that are taken away with each message, beside as many as it has itself.

A pool's worth at once would hold up the tokens of all streams.
"""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Holder:
    """A replica; `mask` is its one bit in the index."""

    name: str
    mask: int
    addresses: set[bytes] = field(default_factory=set)
    layout: Layout | None = None
    is_full: bool = False


class PrefixIndex:
    """Follows the block events of replicas, each named and each with a bit of its own.

    It costs placement at most: a replica that claims blocks which it does not have computes them.
    Its memory is bounded by what replicas can hold, and by MAX_TOLD_BLOCKS for each.
    """

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}
        self._masks: dict[bytes, int] = {}
        self._members: dict[Layout, int] = {}
        self._by_bit: list[_Holder | None] = []
        self._gone: list[_Holder] = []

    def identify(self, name: str, identity: Identity) -> None:
        """What the replica's addresses are made of; one that names no block size has none."""
        holder = self._holder(name)
        self._leave_layout(holder)
        if identity.block_size:
            layout = Layout(
                identity.version, identity.layout_id, identity.block_size, identity.shares_blocks
            )
            self._join_layout(holder, layout)

    def tell(self, name: str, events: BlockEvents) -> None:
        """Block events that came from the replica, in their order and without gap."""
        holder = self._holder(name)
        if events.snapshot and holder.addresses:
            holder = self._begun_anew(holder)
        self._tidy(TIDIED + len(events.dropped) + len(events.stored))
        for address in events.dropped:
            self._drop(holder, address)
        for address in events.stored:
            self._store(holder, address)

    def forget(self, name: str) -> None:
        """The replica's session is down: nothing is known of it any more."""
        holder = self._holders.pop(name, None)
        if holder is not None:
            self._leave_layout(holder)
            self._gone.append(holder)

    def known_blocks(self, name: str) -> int:
        """Blocks that the replica is known to have cached."""
        holder = self._holders.get(name)
        return len(holder.addresses) if holder is not None else 0

    def layout(self, name: str) -> Layout | None:
        """That of the replica's blocks; None while it has not told."""
        holder = self._holders.get(name)
        return holder.layout if holder is not None else None

    def cached_tokens(self, demand: Demand) -> Mapping[str, int]:
        """Leading tokens that each replica need not compute; those that have none are left out.

        The last token is always computed, since the first output is drawn from it.
        """
        found: dict[str, int] = {}
        if self._masks:
            for layout, members in self._members.items():
                self._follow(demand, layout, members, found)
        return found

    def _follow(self, demand: Demand, layout: Layout, members: int, found: dict[str, int]) -> None:
        """Goes along the prompt's blocks until no member has the next one."""
        chain = demand.chains.get(layout)
        if chain is None:
            chain = demand.chains[layout] = Chain(
                layout, demand.salt, demand.token_ids, demand.tenant
            )
        size, masks = layout.block_size, self._masks
        blocks = min((len(demand.token_ids) - 1) // size, MAX_BLOCKS)
        for block, address in zip(range(blocks), chain, strict=False):
            having = members & masks.get(address, 0)
            if having != members:
                self._note(members & ~having, block * size, found)
                members = having
            if not members:
                return
        self._note(members, blocks * size, found)

    def _note(self, mask: int, tokens: int, found: dict[str, int]) -> None:
        while tokens and mask:
            bit = mask.bit_length() - 1
            mask ^= 1 << bit
            holder = self._by_bit[bit]
            if holder is not None:
                found[holder.name] = tokens

    def _holder(self, name: str) -> _Holder:
        holder = self._holders.get(name)
        if holder is None:
            if None not in self._by_bit:
                self._by_bit.append(None)
            bit = self._by_bit.index(None)
            holder = self._holders[name] = self._by_bit[bit] = _Holder(name, 1 << bit)
        return holder

    def _store(self, holder: _Holder, address: bytes) -> None:
        if len(holder.addresses) < MAX_TOLD_BLOCKS:
            holder.addresses.add(address)
            self._masks[address] = self._masks.get(address, 0) | holder.mask
        elif not holder.is_full:
            holder.is_full = True
            _log.warning(
                "%s tells of more than %d blocks; the rest is ignored", holder.name, MAX_TOLD_BLOCKS
            )

    def _drop(self, holder: _Holder, address: bytes) -> None:
        if address in holder.addresses:
            holder.addresses.remove(address)
            self._unmask(holder, address)

    def _unmask(self, holder: _Holder, address: bytes) -> None:
        left = self._masks[address] & ~holder.mask
        if left:
            self._masks[address] = left
        else:
            del self._masks[address]

    def _begun_anew(self, holder: _Holder) -> _Holder:
        """A replica's successor of the same layout, of whose blocks nothing is known."""
        layout = holder.layout
        self.forget(holder.name)
        successor = self._holder(holder.name)
        self._join_layout(successor, layout)
        return successor

    def _tidy(self, count: int) -> None:
        """Takes away so many leftovers of those that are gone; bits are free after the last."""
        while count > 0 and self._gone:
            holder = self._gone[-1]
            while holder.addresses and count > 0:
                self._unmask(holder, holder.addresses.pop())
                count -= 1
            if not holder.addresses:
                self._gone.pop()
                self._by_bit[holder.mask.bit_length() - 1] = None

    def _join_layout(self, holder: _Holder, layout: Layout | None) -> None:
        holder.layout = layout
        if layout is not None:
            self._members[layout] = self._members.get(layout, 0) | holder.mask

    def _leave_layout(self, holder: _Holder) -> None:
        if holder.layout is None:
            return
        left = self._members[holder.layout] & ~holder.mask
        if left:
            self._members[holder.layout] = left
        else:
            del self._members[holder.layout]
        holder.layout = None
