"""KvService over a real connection: messages, limits, back-pressure, and what a cancel frees."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
from tokenway.kv.v1 import kv_pb2 as pb
from tokenway.kv.v1.kv_pb2_grpc import KvServiceStub

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.record import checksum, layout_digest
from services.shared.tls.way import CLEAR
from tests.engine.kv.lender import LAYOUT, Door, Lender, lent
from tests.engine.kv.plain_memory import PlainMemory
from tests.engine.kv.secured import secured, way_of
from tests.mesh_bed import Certified
from tests.waiting import until

MIB = 2**20
LONG_MS = 60_000


def contents(count: int, size: int) -> dict[bytes, bytes]:
    """Blocks by address; no two are alike."""
    return {at.to_bytes(16, "little"): (b"%08d" % at * size)[:size] for at in range(count)}


def fetch_of(blocks: dict[bytes, bytes], **fields: int) -> pb.FetchRequest:
    return pb.FetchRequest(kv_layout_id=LAYOUT, addresses=b"".join(blocks), **fields)


def put_together(responses: list[pb.FetchResponse], blocks: dict[bytes, bytes]) -> list[bytes]:
    """The blocks of a stream, whose order and sums must be right."""
    got: list[bytes] = []
    begun = b""
    for response in responses:
        for part in response.parts:
            assert part.index == len(got)
            begun += part.data
            if part.HasField("checksum"):
                address = list(blocks)[part.index]
                assert part.checksum == checksum(address, layout_digest(LAYOUT), begun)
                got.append(begun)
                begun = b""
    assert not begun
    return got


async def refusal(lender: Lender, request: pb.FetchRequest) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await lender.fetched(request)
    return raised.value


async def test_small_blocks_share_a_message() -> None:
    blocks = contents(48, 64)
    async with lent(PlainMemory(64, 64)) as lender:
        await lender.publish(blocks)
        (response,) = await lender.fetched(fetch_of(blocks))
        assert put_together([response], blocks) == list(blocks.values())
        assert response.incarnation == lender.lending.incarnation


async def test_large_blocks_go_over_several_messages() -> None:
    blocks = contents(3, 5 * MIB // 2)
    async with lent(PlainMemory(4, 5 * MIB // 2), blocks=4) as lender:
        await lender.publish(blocks)
        responses = await lender.fetched(fetch_of(blocks))
        assert put_together(responses, blocks) == list(blocks.values())
        sizes = [sum(len(part.data) for part in each.parts) for each in responses]
        assert sizes == [MIB, MIB, MIB // 2] * 3


async def test_each_kind_of_connection_carries_the_same(tmp_path: Path) -> None:
    blocks = contents(8, 3 * MIB // 4)
    for door in (Door(), secured(tmp_path)):
        async with lent(PlainMemory(8, 3 * MIB // 4), door, blocks=8) as lender:
            await lender.publish(blocks)
            responses = await lender.fetched(fetch_of(blocks))
            assert put_together(responses, blocks) == list(blocks.values())


async def test_a_stranger_gets_nothing(tmp_path: Path) -> None:
    blocks = contents(1, 64)
    stranger = way_of(Certified(tmp_path / "other"))
    async with lent(PlainMemory(8, 64), secured(tmp_path)) as lender:
        await lender.publish(blocks)
        for way in (CLEAR, stranger):
            async with way.dial(lender.address) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await KvServiceStub(channel).Fetch(fetch_of(blocks)).read()
                assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("request_of", "told"),
    [
        ({"addresses": b"x" * 17}, "addresses must have a multiple of 16 bytes, got 17"),
        ({"addresses": bytes(16 * 65_537)}, "addresses must be at most 65536, got 65537"),
        ({"wait_ms": 60_001}, "wait_ms must be 0 to 60000, got 60001"),
    ],
)
async def test_a_fetch_beyond_its_limits_is_told_which(
    request_of: dict[str, int | bytes], told: str
) -> None:
    async with lent() as lender:
        request = pb.FetchRequest(kv_layout_id=LAYOUT, **request_of)  # type: ignore[arg-type]
        error = await refusal(lender, request)
        assert (error.code(), error.details()) == (grpc.StatusCode.INVALID_ARGUMENT, told)


@pytest.mark.parametrize("lease_ms", [0, 60_001])
async def test_a_lease_beyond_its_limits_is_told_which(lease_ms: int) -> None:
    async with lent() as lender:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await lender.stub.Lookup(pb.LookupRequest(kv_layout_id=LAYOUT, lease_ms=lease_ms))
        assert raised.value.details() == f"lease_ms must be 1 to 60000, got {lease_ms}"


async def test_another_layout_is_refused_by_name() -> None:
    async with lent() as lender:
        error = await refusal(lender, pb.FetchRequest(kv_layout_id="another"))
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert error.details() == "kv_layout_id must be 'layout', got 'another'"


async def test_a_lease_is_given_and_taken_back() -> None:
    blocks = contents(4, 64)
    async with lent(PlainMemory(8, 64)) as lender:
        await lender.publish(blocks)
        request = pb.LookupRequest(
            kv_layout_id=LAYOUT, addresses=b"".join(blocks), lease_ms=LONG_MS
        )
        answer = await lender.stub.Lookup(request)
        assert (answer.found, answer.lease.expires_ms) == (4, LONG_MS)
        assert lender.pool.leased == 4
        release = pb.ReleaseRequest(lease_id=answer.lease.id, incarnation=answer.incarnation)
        assert (await lender.stub.Release(release)).held
        assert not (await lender.stub.Release(release)).held
        request.ClearField("lease_ms")
        answer = await lender.stub.Lookup(request)
        assert answer.found == 4
        assert not answer.HasField("lease")


async def test_nothing_is_read_ahead_for_one_who_does_not_take_it() -> None:
    size = MIB
    blocks = contents(64, size)
    memory = PlainMemory(64, size)
    async with lent(memory) as lender:
        await lender.publish(blocks)
        call = lender.stub.Fetch(fetch_of(blocks))
        assert isinstance(await call.read(), pb.FetchResponse)
        assert len(await lender.fetched(fetch_of(blocks))) == 64, "another takes all meanwhile"
        assert memory.copied < 64 + 48
        assert lender.pool.leased == 64, "they stay until they are taken"
        rest = [await call.read() for _ in range(63)]
        assert all(isinstance(response, pb.FetchResponse) for response in rest)
        assert not isinstance(await call.read(), pb.FetchResponse)


async def test_a_cancel_frees_what_was_held_and_the_place() -> None:
    blocks = contents(32, MIB)
    rules = PeerSettings(fetches=1)
    async with lent(PlainMemory(64, MIB), Door(rules=rules)) as lender:
        await lender.publish(blocks)
        call = lender.stub.Fetch(fetch_of(blocks))
        await call.read()
        assert lender.pool.leased == 32
        call.cancel()
        await until(lambda: lender.pool.cached == 32)
        assert len(await lender.fetched(fetch_of(blocks))) == 32


async def test_a_deadline_frees_what_was_held_and_the_place() -> None:
    rules = PeerSettings(fetches=1)
    async with lent(door=Door(rules=rules)) as lender:
        call = lender.stub.Fetch(fetch_of(contents(1, 64), wait_ms=LONG_MS), timeout=0.05)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call.read()
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: not lender.lending._followers)
        assert await lender.fetched(fetch_of(contents(1, 64))) == []


async def test_one_who_takes_nothing_loses_the_place_and_the_blocks() -> None:
    blocks = contents(64, MIB)
    async with lent(PlainMemory(64, MIB), Door(stall_s=0.2)) as lender:
        await lender.publish(blocks)
        call = lender.stub.Fetch(fetch_of(blocks))
        await until(lambda: lender.pool.leased)
        await until(lambda: lender.pool.cached == 64)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            async for _ in call:
                pass
        assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_hundred_fetches_at_once_are_served_or_told_that_there_is_no_room() -> None:
    blocks = contents(32, 3 * MIB // 4)
    async with lent(PlainMemory(32, 3 * MIB // 4), blocks=32) as lender:
        await lender.publish(blocks)
        fetches = (lender.fetched(fetch_of(blocks)) for _ in range(100))
        answers = await asyncio.gather(*fetches, return_exceptions=True)
        served = [each for each in answers if isinstance(each, list)]
        assert len(served) >= 16
        for responses in served:
            assert put_together(responses, blocks) == list(blocks.values())
        for each in answers:
            if isinstance(each, grpc.aio.AioRpcError):
                assert each.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                assert each.details() == "at most 16 may read from this engine at a time"
            else:
                assert isinstance(each, list)


async def test_a_life_has_one_name() -> None:
    blocks = contents(5, MIB)
    async with lent(PlainMemory(8, MIB)) as lender:
        await lender.publish(blocks)
        responses = await lender.fetched(fetch_of(blocks))
        assert all(one.incarnation == other.incarnation for one, other in pairwise(responses))
