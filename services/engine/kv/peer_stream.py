"""One fetch from another engine: blocks in order, checked, up to the first that does not come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

import grpc
from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.missed import Missed
from services.engine.kv.peer_blocks import BadPart, Part, PeerBlocks, WholeBlock
from services.shared.stream.events import CacheMiss

if TYPE_CHECKING:
    Call = grpc.aio.UnaryStreamCall[pb.FetchRequest, pb.FetchResponse]

CHECKED_AT_ONCE = 2**20
"""Bytes that are checked on the event loop's thread; it takes some 50 microseconds."""

_CAUSES = {
    grpc.StatusCode.DEADLINE_EXCEEDED: CacheMiss.TIMEOUT,
    grpc.StatusCode.FAILED_PRECONDITION: CacheMiss.LAYOUT,
}
"""What a peer's refusal means; of any other, it cannot be used."""


class PeerStream:
    """Reads one call.

    Args:
        addresses: of the wanted blocks.
        layout: digest of the layout that both must have.
        rules: how long blocks are waited for.
    """

    def __init__(
        self,
        call: Call,
        addresses: Sequence[bytes],
        *,
        block_bytes: int,
        layout: bytes,
        rules: PeerSettings,
    ) -> None:
        self._call = call
        self._left = len(addresses)
        self._blocks = PeerBlocks(addresses, block_bytes)
        self._layout = layout
        self._rules = rules
        self._incarnation: int | None = None
        self._is_broken_off = False

    def break_off(self) -> None:
        """Nothing of it is wanted any more."""
        self._is_broken_off = True
        self._call.cancel()

    async def blocks(self) -> AsyncGenerator[memoryview, None]:
        """Sound blocks. What follows one that is not, is not looked at.

        Raises:
            Missed: the next one does not come.
        """
        now = asyncio.get_running_loop().time
        end = now() + self._rules.limit_s
        until = min(now() + self._rules.patience_s, end)
        while self._left:
            parts = await self._parts(until)
            if not parts:  # steps are made
                until = min(now() + self._rules.patience_s, end)
            for part in parts:
                block = self._whole(part)
                if block is None:
                    continue
                if not await self._is_sound(block):
                    raise Missed(CacheMiss.CHECKSUM)
                if self._is_broken_off:
                    raise Missed(CacheMiss.OFF)
                yield block.payload
                until = min(now() + self._rules.patience_s, end)
                self._left -= 1

    async def _parts(self, until: float) -> Sequence[pb.BlockPart]:
        """The next message's; none in a message that only tells that steps are made."""
        message = await self._message(until)
        if message is None:  # gRPC could not read it
            raise Missed(CacheMiss.CHECKSUM)
        if not isinstance(message, pb.FetchResponse):  # gRPC's word for the end
            raise Missed(CacheMiss.EVICTED)
        if self._incarnation not in {None, message.incarnation}:
            raise Missed(CacheMiss.CHECKSUM)
        self._incarnation = message.incarnation
        return message.parts

    async def _message(self, until: float) -> object:
        try:
            async with asyncio.timeout_at(until):
                return await self._call.read()
        except TimeoutError as error:
            raise Missed(CacheMiss.TIMEOUT) from error
        except grpc.aio.AioRpcError as error:
            raise Missed(_CAUSES.get(error.code(), CacheMiss.UNREACHABLE)) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self._is_broken_off or (task is not None and task.cancelling()):
                raise
            raise Missed(CacheMiss.OFF) from error

    def _whole(self, part: pb.BlockPart) -> WholeBlock | None:
        checksum = part.checksum if part.HasField("checksum") else None
        try:
            return self._blocks.take(Part(index=part.index, data=part.data, checksum=checksum))
        except BadPart as error:
            raise Missed(CacheMiss.CHECKSUM) from error

    async def _is_sound(self, block: WholeBlock) -> bool:
        if len(block.payload) <= CHECKED_AT_ONCE:
            return block.is_sound(self._layout)
        return await asyncio.to_thread(block.is_sound, self._layout)
