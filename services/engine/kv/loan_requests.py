"""What others ask of this engine's blocks. What is built is within its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from services.shared.addresses import ADDRESS_BYTES
from services.shared.errors import InvalidRequest, MissingField
from services.shared.stream.limits import within

MAX_ADDRESSES = 65_536
MAX_LEASE_MS = 60_000
MAX_WAIT_MS = 60_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """Addresses one after the other, under the KV layout of who asks."""

    kv_layout_id: str
    addresses: Sequence[bytes]

    @classmethod
    def parsed(cls, kv_layout_id: str, packed: bytes) -> Self:
        """Addresses of ADDRESS_BYTES each, without gaps."""
        count, rest = divmod(len(packed), ADDRESS_BYTES)
        if rest:
            raise InvalidRequest(
                f"addresses must have a multiple of {ADDRESS_BYTES} bytes, got {len(packed)}",
                field="addresses",
            )
        if count > MAX_ADDRESSES:
            raise InvalidRequest(
                f"addresses must be at most {MAX_ADDRESSES}, got {count}", field="addresses"
            )
        starts = range(0, len(packed), ADDRESS_BYTES)
        return cls(
            kv_layout_id=kv_layout_id,
            addresses=[packed[at : at + ADDRESS_BYTES] for at in starts],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """Which leading blocks are there; with `lease_ms` they stay so long.

    With `reads_memory` they are wanted where they can be read from memory, which needs a lease.
    """

    chain: Chain
    lease_ms: int | None = None
    reads_memory: bool = False

    def __post_init__(self) -> None:
        within("lease_ms", self.lease_ms, 1, MAX_LEASE_MS)
        if self.reads_memory and self.lease_ms is None:
            raise MissingField("lease_ms must be set with transport", field="lease_ms")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetch:
    """Blocks in order; for `wait_ms` a generation may still come that computes them."""

    chain: Chain
    wait_ms: int = 0

    def __post_init__(self) -> None:
        within("wait_ms", self.wait_ms, 0, MAX_WAIT_MS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """A lease that one process, named by its incarnation, has given."""

    lease_id: int
    incarnation: int
