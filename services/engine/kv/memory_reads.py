"""Blocks read from another engine's memory, as far as that goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv.leases import Lease
from services.engine.kv.record import CHECKSUM_BYTES, checksum, layout_digest
from services.engine.kv.staging import Staging
from services.shared.trace_context import call_metadata

if TYPE_CHECKING:
    from tokenway.kv.v1.kv_pb2_grpc import KvServiceStub

    Stub = KvServiceStub

LEASE_MS = 10_000
RELEASE_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block lies, and its checksum."""

    session: str
    offset: int
    checksum: bytes


class MemoryReads:
    """Reads what a peer has now; what it computes later, or does not let be read, is fetched.

    Args:
        staging: where blocks are read into.
        patience_s: seconds that a peer has to answer.
    """

    def __init__(self, staging: Staging, layout_id: str, patience_s: float) -> None:
        self._staging = staging
        self._layout_id = layout_id
        self._layout = layout_digest(layout_id)
        self._patience_s = patience_s

    async def blocks(
        self, stub: Stub, addresses: Sequence[bytes]
    ) -> AsyncGenerator[memoryview, None]:
        """Sound blocks, valid until the next; ends early for whatever reason, and raises nothing.

        It is the stream's to tell why a block does not come.
        """
        room = self._staging.lend(1)
        if room is None:
            return
        at = 0
        try:
            while at < len(addresses):
                async with self._lookup(stub, addresses[at:]) as found:
                    if not found:
                        return
                    for place in found:
                        if not await self._has_come(room, addresses[at], place):
                            _log.warning("a block could not be read from a peer's memory")
                            return
                        yield self._staging.room(room.blocks[0])
                        at += 1
        finally:
            room.end()

    async def _has_come(self, room: Lease, address: bytes, place: _Place) -> bool:
        """Whether the room holds the block in time; a read that hangs keeps its room."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.to_thread(self._is_read, room, address, place)
        except TimeoutError:
            return False

    @asynccontextmanager
    async def _lookup(self, stub: Stub, addresses: Sequence[bytes]) -> AsyncIterator[list[_Place]]:
        """Where the first blocks lie, which stay there inside; none if they cannot be read."""
        request = pb.LookupRequest(
            kv_layout_id=self._layout_id,
            addresses=b"".join(addresses),
            lease_ms=LEASE_MS,
            transport=pb.MEMORY_TRANSPORT_MOONCAKE,
        )
        try:
            answer = await stub.Lookup(request, timeout=self._patience_s, metadata=call_metadata())
        except grpc.aio.AioRpcError:
            answer = pb.LookupResponse()
        try:
            yield self._places(answer) if answer.found <= len(addresses) else []
        finally:
            if answer.HasField("lease"):
                release = pb.ReleaseRequest(
                    lease_id=answer.lease.id, incarnation=answer.incarnation
                )
                with suppress(grpc.aio.AioRpcError):  # it ends by itself then
                    await stub.Release(release, timeout=RELEASE_S)

    def _places(self, answer: pb.LookupResponse) -> list[_Place]:
        region = answer.region
        sums = range(0, len(region.checksums), CHECKSUM_BYTES)
        if region.block_bytes != self._staging.block_bytes or len(sums) != len(region.offsets):
            return []
        return [
            _Place(region.session, offset, region.checksums[at : at + CHECKSUM_BYTES])
            for offset, at in zip(region.offsets, sums, strict=True)
        ]

    def _is_read(self, room: Lease, address: bytes, place: _Place) -> bool:
        """Whether the room now holds the block; for a worker thread."""
        staging, slot = self._staging, room.blocks[0]
        (into,) = staging.offsets([slot])
        with room.reading():
            came = staging.transport.read(place.session, place.offset, into, staging.block_bytes)
            return came and checksum(address, self._layout, staging.room(slot)) == place.checksum
