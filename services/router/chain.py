"""Addresses of a prompt's KV blocks, hashed as far as somebody asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.shared.addresses import next_address, root_address


class Layout(NamedTuple):
    """Replicas with an equal one have equal addresses for equal tokens.

    Args:
        version: model fingerprint.
        layout_id: names the memory layout of a block.
        block_size: tokens in a block.
        shares_blocks: equal prompts of different tenants have equal blocks.
    """

    version: str
    layout_id: str
    block_size: int
    shares_blocks: bool = False


class Chain:
    """Addresses of the full blocks of token IDs; each is hashed once, with those before it."""

    __slots__ = ("_addresses", "_size", "_token_ids")

    def __init__(
        self, layout: Layout, salt: bytes, token_ids: Sequence[int], tenant: str = ""
    ) -> None:
        self._size = layout.block_size
        self._token_ids = token_ids
        tenant = "" if layout.shares_blocks else tenant
        self._addresses = [root_address(layout.version, layout.layout_id, salt, tenant)]

    def __iter__(self) -> Iterator[bytes]:
        size, addresses = self._size, self._addresses
        yield from addresses[1:]
        for start in range((len(addresses) - 1) * size, len(self._token_ids) - size + 1, size):
            addresses.append(next_address(addresses[-1], self._token_ids[start : start + size]))
            yield addresses[-1]
