"""A peer that answers nonsense ends the fetch; none of its wrong bytes is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import grpc
import pytest
from tokenway.kv.v1 import kv_pb2 as pb
from tokenway.kv.v1.kv_pb2_grpc import KvServiceServicer, add_KvServiceServicer_to_server

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.record import checksum, layout_digest
from services.shared.server import serving
from services.shared.stream.events import CacheMiss
from tests.engine.kv.borrower import borrowing
from tests.engine.kv.lender import LAYOUT

if TYPE_CHECKING:
    from typing import Any

    Context = grpc.aio.ServicerContext[Any, Any]

SIZE = 64
ADDRESSES = [bytes([at]) * 16 for at in range(4)]
BLOCKS = [bytes([at]) * SIZE for at in range(4)]

Said = Callable[[], Iterable[pb.FetchResponse]]


class Liar(KvServiceServicer):
    """Says what a test has it say."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self.ended = asyncio.Event()

    async def Fetch(  # noqa: N802  # the wire's name
        self,
        request: pb.FetchRequest,  # noqa: ARG002  # whatever is asked
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.FetchResponse]:
        try:
            for response in self._said():
                yield response
        finally:
            self.ended.set()

    async def Lookup(self, request: pb.LookupRequest, context: Context) -> pb.LookupResponse:  # noqa: ARG002, N802
        return pb.LookupResponse()

    async def Release(self, request: pb.ReleaseRequest, context: Context) -> pb.ReleaseResponse:  # noqa: ARG002, N802
        return pb.ReleaseResponse()


@asynccontextmanager
async def lying(said: Said) -> AsyncIterator[str]:
    """Where it listens; its call must have ended by then."""
    liar = Liar(said)

    def register(server: grpc.aio.Server) -> None:
        add_KvServiceServicer_to_server(liar, server)

    async with serving("127.0.0.1:0", register, (), grace_s=0) as server:
        yield server.address
        await asyncio.wait_for(liar.ended.wait(), 10)


def total(index: int, payload: bytes | None = None) -> bytes:
    block = BLOCKS[index] if payload is None else payload
    return checksum(ADDRESSES[index], layout_digest(LAYOUT), block)


def part(index: int, data: bytes | None = None, total_of: bytes | None = None) -> pb.BlockPart:
    """A whole block in one part, if nothing else is said."""
    whole = data is None
    return pb.BlockPart(
        index=index,
        data=BLOCKS[index] if data is None else data,
        checksum=total(index) if whole and total_of is None else total_of,
    )


def message(*parts: pb.BlockPart, incarnation: int = 7) -> pb.FetchResponse:
    return pb.FetchResponse(incarnation=incarnation, parts=parts)


def endless(first: pb.BlockPart, other: pb.BlockPart) -> Iterator[pb.FetchResponse]:
    yield message(first)
    for _ in count():
        yield message(other)


LIES: dict[str, list[pb.FetchResponse]] = {
    "a block that nobody asked for": [message(part(0)), message(pb.BlockPart(index=9, data=b"x"))],
    "a block again": [message(part(0), part(0))],
    "a block left out": [message(part(0), part(2))],
    "another block's bytes": [message(part(0), part(1, BLOCKS[2], total(2)))],
    "another block's bytes under our name": [message(part(0), part(1, BLOCKS[2], total(1)))],
    "bytes of another layout": [
        message(part(0), part(1, BLOCKS[1], checksum(ADDRESSES[1], b"other---", BLOCKS[1])))
    ],
    "a sum of the wrong length": [message(part(0), part(1, BLOCKS[1], b"short"))],
    "an empty sum": [message(part(0), part(1, BLOCKS[1], b""))],
    "no sum": [message(part(0), part(1, BLOCKS[1], None), part(2))],
    "a sum before the end": [message(part(0), part(1, BLOCKS[1][:9], total(1)))],
    "one byte too many": [message(part(0), part(1, BLOCKS[1] + b"x", total(1)))],
    "parts that are together too long": [
        message(part(0), part(1, BLOCKS[1][:60]), part(1, BLOCKS[1][:60], total(1)))
    ],
    "a part of nothing": [message(part(0), part(1, b""))],
    "another life": [message(part(0)), message(part(1), incarnation=8)],
}


@pytest.mark.parametrize("lie", LIES)
async def test_nothing_of_a_lie_is_given_and_nothing_after_it(lie: str) -> None:
    messages = [*LIES[lie], message(part(1)), message(part(2)), message(part(3))]
    async with lying(lambda: messages) as liar, borrowing(SIZE) as borrower:
        assert await borrower.fetched(ADDRESSES, liar) == (BLOCKS[:1], CacheMiss.CHECKSUM)


async def test_a_block_in_parts_over_messages_is_put_together() -> None:
    parts = [part(0, BLOCKS[0][:1]), part(0, BLOCKS[0][1:63]), part(0, BLOCKS[0][63:], total(0))]
    messages = [message(parts[0]), message(*parts[1:], part(1, BLOCKS[1][:5])), message()]
    messages += [message(part(1, BLOCKS[1][5:], total(1))), message(part(2), part(3))]
    async with lying(lambda: messages) as peer, borrowing(SIZE) as borrower:
        assert await borrower.fetched(ADDRESSES, peer) == (BLOCKS, None)


async def test_what_follows_the_last_block_is_not_waited_for() -> None:
    def said() -> Iterator[pb.FetchResponse]:
        return endless(part(0), part(0))

    async with lying(said) as liar, borrowing(SIZE) as borrower:
        assert await borrower.fetched(ADDRESSES[:1], liar) == (BLOCKS[:1], None)


async def test_endless_messages_of_nothing_end_at_the_limit() -> None:
    def said() -> Iterator[pb.FetchResponse]:
        yield message(part(0))
        for _ in count():
            yield message()

    hasty = PeerSettings(patience_s=0.2, limit_s=0.2, arrival_s=0)
    async with lying(said) as liar, borrowing(SIZE, hasty) as borrower:
        blocks, cause = await borrower.fetched(ADDRESSES, liar)
        assert (blocks, cause) == (BLOCKS[:1], CacheMiss.TIMEOUT)


async def test_endless_parts_of_one_block_end_at_its_length() -> None:
    def said() -> Iterator[pb.FetchResponse]:
        return endless(part(0), part(1, b"x"))

    async with lying(said) as liar, borrowing(SIZE) as borrower:
        blocks, cause = await borrower.fetched(ADDRESSES, liar)
        assert (blocks, cause) == (BLOCKS[:1], CacheMiss.CHECKSUM)


async def test_a_message_beyond_all_bounds_is_not_read() -> None:
    def said() -> Iterator[pb.FetchResponse]:
        yield message(part(0, bytes(17 * 2**20)))

    async with lying(said) as liar, borrowing(SIZE) as borrower:
        blocks, cause = await borrower.fetched(ADDRESSES, liar)
        assert blocks == []
        assert cause in {CacheMiss.CHECKSUM, CacheMiss.UNREACHABLE}


async def test_large_blocks_are_checked_beside_the_event_loop() -> None:
    size = 3 * 2**20
    good, bad = bytes(size), b"x" * size
    layout = layout_digest(LAYOUT)
    sums = [checksum(address, layout, good) for address in ADDRESSES]
    messages = [
        message(pb.BlockPart(index=0, data=good, checksum=sums[0])),
        message(pb.BlockPart(index=1, data=bad, checksum=sums[1])),
    ]
    async with lying(lambda: messages) as liar, borrowing(size) as borrower:
        assert await borrower.fetched(ADDRESSES, liar) == ([good], CacheMiss.CHECKSUM)
