"""Other engines as a supply: the one that the router names has the blocks or computes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING

import grpc
from tokenway.kv.v1 import kv_pb2 as pb
from tokenway.kv.v1.kv_pb2_grpc import KvServiceStub

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.loan_requests import MAX_ADDRESSES
from services.engine.kv.memory_reads import MemoryReads
from services.engine.kv.missed import Missed, counted
from services.engine.kv.peer_channels import PeerChannels
from services.engine.kv.peer_stream import PeerStream
from services.engine.kv.record import layout_digest
from services.engine.kv.staging import Staging
from services.engine.kv.stores.node_address import node_address
from services.engine.kv.supply import Given, Wanted
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Tier
from services.shared.stream.events import CacheMiss
from services.shared.tls.way import Way
from services.shared.trace_context import call_metadata

if TYPE_CHECKING:
    from services.engine.kv.peer_stream import Call


class PeerSupply:
    """Fetches from peers of the same layout.

    Args:
        layout_id: of this engine's blocks; peers refuse any other.
        block_bytes: of each block.
        way: to other engines.
        staging: where peers' memory is read into; None where it is not read.
    """

    tier = Tier.PEER

    def __init__(
        self,
        layout_id: str,
        block_bytes: int,
        switch: CacheSwitch,
        figures: TierFigures,
        rules: PeerSettings,
        *,
        way: Way,
        staging: Staging | None = None,
    ) -> None:
        self._layout_id = layout_id
        self._layout = layout_digest(layout_id)
        self._block_bytes = block_bytes
        self._switch = switch
        self._figures = figures
        self._rules = rules
        self._memory = (
            None if staging is None else MemoryReads(staging, layout_id, rules.patience_s)
        )
        self._channels = PeerChannels(way)
        self._streams: dict[PeerStream, asyncio.AbstractEventLoop] = {}
        switch.listen(self._switched)

    def can_supply(self, wanted: Wanted) -> bool:
        return self._switch.enabled and wanted.peer is not None and _is_address(wanted.peer)

    def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        return counted(self._blocks(wanted), len(wanted.addresses), self._figures)

    async def close(self) -> None:
        """Ends all connections."""
        await self._channels.close()

    async def _blocks(self, wanted: Wanted) -> AsyncGenerator[Sequence[memoryview], None]:
        """One at a time. Raises Missed where the next one does not come."""
        addresses, read = wanted.addresses[:MAX_ADDRESSES], 0
        with self._channels.to(wanted.peer or "") as channel:
            if self._memory is not None:
                reads = self._memory.blocks(KvServiceStub(channel), addresses)
                async with aclosing(reads) as blocks:
                    async for payload in blocks:
                        if not self._switch.enabled:
                            raise Missed(CacheMiss.OFF)
                        read += 1
                        yield [payload]
            if read < len(addresses):
                rest = self._streamed(channel, addresses[read:], wanted.follows)
                async with aclosing(rest) as blocks:
                    async for payload in blocks:
                        yield [payload]
        if len(wanted.addresses) > MAX_ADDRESSES:
            raise Missed(CacheMiss.ABSENT)

    async def _streamed(
        self, channel: grpc.aio.Channel, addresses: Sequence[bytes], follows: bool
    ) -> AsyncGenerator[memoryview, None]:
        request = pb.FetchRequest(
            kv_layout_id=self._layout_id,
            addresses=b"".join(addresses),
            wait_ms=round(1000 * self._rules.arrival_s) if follows else 0,
        )
        call = KvServiceStub(channel).Fetch(request, metadata=call_metadata())
        with self._stream(call, addresses) as stream:
            try:
                async with aclosing(stream.blocks()) as blocks:
                    async for payload in blocks:
                        yield payload
            except Missed as missed:
                if missed.cause is CacheMiss.TIMEOUT and not _is_connected(channel):
                    raise Missed(CacheMiss.UNREACHABLE) from missed
                raise

    @contextmanager
    def _stream(self, call: Call, addresses: Sequence[bytes]) -> Iterator[PeerStream]:
        """Reads a call, which ends with the block."""
        stream = PeerStream(
            call,
            addresses,
            block_bytes=self._block_bytes,
            layout=self._layout,
            rules=self._rules,
        )
        self._streams[stream] = asyncio.get_running_loop()
        try:
            yield stream
        finally:
            del self._streams[stream]
            call.cancel()

    def _switched(self, enabled: bool) -> None:
        """Off, on any thread: nobody waits for what is on its way."""
        if not enabled:
            for stream, home in list(self._streams.items()):
                home.call_soon_threadsafe(stream.break_off)


def _is_connected(channel: grpc.aio.Channel) -> bool:
    return channel.get_state() is grpc.ChannelConnectivity.READY


def _is_address(text: str) -> bool:
    try:
        node_address(text)
    except ValueError:
        return False
    return True
