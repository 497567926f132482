"""Where blocks come from that the pool has not got."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.engine.kv.tier import Tier
from services.shared.stream.events import CacheMiss
from services.shared.stream.generation import Generation

AT_ONCE = 4
"""Blocks that are handed on together: to change threads costs as much as to copy a block."""

Given = Sequence[memoryview] | CacheMiss
"""The bytes of the next blocks, of one at least; or why the next one does not come."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Blocks of one prompt, in the order of their chain.

    Args:
        addresses: at least one.
        peer: `host:port` of an engine that has or computes them; None where none is known.
        follows: the peer is about to compute them.
    """

    addresses: Sequence[bytes]
    peer: str | None = None
    follows: bool = False

    @classmethod
    def by(cls, generation: Generation, addresses: Sequence[bytes]) -> Wanted:
        """These blocks, from where the generation's hints say."""
        hints = generation.routing
        return cls(addresses=addresses, peer=hints.prefill_peer, follows=hints.prefill_computes)


class Supply(Protocol):
    """One tier. Runs on the event loop's thread and never blocks it."""

    tier: Tier

    def can_supply(self, wanted: Wanted) -> bool:
        """Whether it is worth asking; says no at once where nothing can come."""

    def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        """The bytes of the wanted blocks in their order, up to the first that does not come.

        They are valid until the next ones are asked for. Each block has passed its checksum and is
        that of its address. Where one does not come, the last that is given tells why. It ends
        within its own time limit, raises nothing, and counts hits, misses and bytes; closing it
        ends it early. Who asks counts how long it took.
        """
