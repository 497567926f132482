"""Blocks read from a peer's memory: what cannot be read, or is not right, comes by the stream."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv.cache_settings import PeerSettings
from services.shared.stream.events import CacheMiss
from tests.engine.kv.borrower import borrowing
from tests.engine.kv.lender import LAYOUT, lent, prompt
from tests.engine.kv.local_transport import Wire, staging
from tests.engine.kv.plain_memory import PlainMemory
from tests.engine.kv.test_servicer import contents
from tests.waiting import until

SIZE = 64


async def test_what_a_peer_has_is_read_from_its_memory_a_lease_after_the_other() -> None:
    blocks, wire = contents(20, SIZE), Wire()
    shelf = staging(wire, SIZE, slots=8)
    async with (
        lent(PlainMemory(64, SIZE), staging=shelf) as lender,
        borrowing(SIZE, staging=staging(wire, SIZE)) as borrower,
    ):
        await lender.publish(blocks)
        assert await borrower.fetched(list(blocks), lender.address) == (
            list(blocks.values()),
            None,
        )
        assert wire.reads == 20
        assert shelf.free == 8
        assert lender.pool.leased == 0, "a copy is lent, and the block is free"


async def test_what_is_not_there_yet_is_followed_by_the_stream() -> None:
    wire = Wire()
    async with (
        lent(held=True, staging=staging(wire, 16)) as lender,
        borrowing(16, staging=staging(wire, 16)) as borrower,
    ):
        await lender.generate(prompt(0))
        (sequence,) = lender.loop.scheduler
        lender.steps.step()
        await until(lambda: sequence.computed)
        fetch = borrower.fetched(sequence.full_addresses(4), lender.address)
        fetching = asyncio.ensure_future(fetch)
        await until(lambda: borrower.figures.hit_blocks == 2)
        assert wire.reads == 2
        lender.steps.free()
        blocks, cause = await fetching
        assert (len(blocks), cause) == (8, None)


@pytest.mark.parametrize("fault", ["fails", "spoils"])
async def test_what_cannot_be_read_or_is_wrong_is_streamed(fault: str) -> None:
    blocks, wire = contents(12, SIZE), Wire()
    shelf = staging(wire, SIZE)
    async with (
        lent(PlainMemory(64, SIZE), staging=shelf) as lender,
        borrowing(SIZE, staging=staging(wire, SIZE)) as borrower,
    ):
        await lender.publish(blocks)
        setattr(wire, fault, True)
        got = await borrower.fetched(list(blocks), lender.address)
        assert got == (list(blocks.values()), None)
        assert wire.reads == 1
        await until(lambda: shelf.free == 8)


async def test_a_read_that_hangs_keeps_its_room_and_the_rest_is_streamed() -> None:
    blocks, wire = contents(12, SIZE), Wire()
    room, rules = staging(wire, SIZE), PeerSettings(patience_s=0.5, arrival_s=0)
    async with (
        lent(PlainMemory(64, SIZE), staging=staging(wire, SIZE)) as lender,
        borrowing(SIZE, rules, staging=room) as borrower,
    ):
        await lender.publish(blocks)
        wire.passing.clear()
        got = await borrower.fetched(list(blocks), lender.address)
        assert got == (list(blocks.values()), None)
        assert room.free == 7
        wire.passing.set()
        await until(lambda: room.free == 8)


async def test_a_peer_that_lends_no_memory_streams() -> None:
    blocks, wire = contents(12, SIZE), Wire()
    async with (
        lent(PlainMemory(64, SIZE)) as lender,
        borrowing(SIZE, staging=staging(wire, SIZE)) as borrower,
    ):
        await lender.publish(blocks)
        got = await borrower.fetched(list(blocks), lender.address)
        assert got == (list(blocks.values()), None)
        assert wire.reads == 0
        await until(lambda: not lender.pool.leased)


async def test_a_full_shelf_lends_nothing_until_a_lease_ends() -> None:
    blocks, wire = contents(12, SIZE), Wire()
    shelf = staging(wire, SIZE, slots=4)
    async with lent(PlainMemory(64, SIZE), staging=shelf) as lender:
        await lender.publish(blocks)
        request = pb.LookupRequest(
            kv_layout_id=LAYOUT,
            addresses=b"".join(blocks),
            lease_ms=60_000,
            transport=pb.MEMORY_TRANSPORT_MOONCAKE,
        )
        first = await lender.stub.Lookup(request)
        assert (first.found, len(first.region.offsets)) == (4, 4)
        assert (await lender.stub.Lookup(request)).found == 0
        release = pb.ReleaseRequest(lease_id=first.lease.id, incarnation=first.incarnation)
        assert (await lender.stub.Release(release)).held
        request.lease_ms = 1
        assert (await lender.stub.Lookup(request)).found == 4
        await until(lambda: shelf.free == 4)


async def test_memory_is_lent_for_a_time_only() -> None:
    async with lent(staging=staging(Wire(), 16)) as lender:
        request = pb.LookupRequest(kv_layout_id=LAYOUT, transport=pb.MEMORY_TRANSPORT_MOONCAKE)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await lender.stub.Lookup(request)
        assert raised.value.details() == "lease_ms must be set with transport"


async def test_off_ends_reads_too() -> None:
    blocks, wire = contents(12, SIZE), Wire()
    async with (
        lent(PlainMemory(64, SIZE), staging=staging(wire, SIZE)) as lender,
        borrowing(SIZE, staging=staging(wire, SIZE)) as borrower,
    ):
        await lender.publish(blocks)
        came: list[memoryview | CacheMiss] = []
        async for each in borrower.given(list(blocks), lender.address):
            came.append(each)
            borrower.switch.set(enabled=False)
        assert len(came) == 2
        assert came[1] is CacheMiss.OFF


async def test_nobody_there_is_unreachable_whatever_the_transport() -> None:
    async with borrowing(SIZE, staging=staging(Wire(), SIZE)) as borrower:
        missed = await borrower.fetched([bytes(16)], "127.0.0.1:1")
        assert missed == ([], CacheMiss.UNREACHABLE)
