"""Fetches from peers: what comes is right, and what does not come is told with its cause."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing
from pathlib import Path

import pytest
from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv import lending
from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.supply import Wanted
from services.shared.stream.events import CacheMiss
from tests.engine.kv.borrower import borrowing
from tests.engine.kv.lender import LAYOUT, Door, lent, prompt
from tests.engine.kv.plain_memory import PlainMemory
from tests.engine.kv.secured import secured
from tests.engine.kv.singly import singly
from tests.engine.kv.test_servicer import contents
from tests.faults.proxy import proxy_to
from tests.waiting import until

MIB = 2**20
SIZE = 3 * MIB // 4
HASTY = PeerSettings(patience_s=0.5, arrival_s=0)


def is_block(given: memoryview | CacheMiss, blocks: dict[bytes, bytes], at: int) -> bool:
    return isinstance(given, memoryview) and bytes(given) == list(blocks.values())[at]


async def test_all_that_a_peer_has_comes_in_order() -> None:
    for size in (64, SIZE, 5 * MIB // 2):
        blocks = contents(8, size)
        async with lent(PlainMemory(8, size), blocks=8) as lender, borrowing(size) as borrower:
            await lender.publish(blocks)
            got, cause = await borrower.fetched(list(blocks), lender.address)
            assert (got, cause) == (list(blocks.values()), None)
            assert borrower.figures.read_bytes == 8 * size


async def test_the_same_comes_over_mutual_tls_and_nothing_in_the_clear(tmp_path: Path) -> None:
    blocks = contents(4, SIZE)
    door = secured(tmp_path)
    async with (
        lent(PlainMemory(4, SIZE), door, blocks=4) as lender,
        borrowing(SIZE, way=door.way) as borrower,
        borrowing(SIZE) as plain,
    ):
        await lender.publish(blocks)
        assert await borrower.fetched(list(blocks), lender.address) == (
            list(blocks.values()),
            None,
        )
        assert await plain.fetched(list(blocks), lender.address) == ([], CacheMiss.UNREACHABLE)


async def test_what_the_peer_has_not_got_any_more_is_evicted() -> None:
    blocks = contents(8, 64)
    async with lent(PlainMemory(64, 64)) as lender, borrowing(64) as borrower:
        await lender.publish(dict(list(blocks.items())[:5]))
        got, cause = await borrower.fetched(list(blocks), lender.address)
        assert (got, cause) == (list(blocks.values())[:5], CacheMiss.EVICTED)


async def test_what_a_peer_computes_comes_as_it_is_computed() -> None:
    async with lent(held=True) as lender, borrowing(16) as borrower:
        generation = prompt(0)
        await lender.generate(generation)
        (sequence,) = lender.loop.scheduler
        fetch = borrower.fetched(sequence.full_addresses(4), lender.address)
        fetching = asyncio.ensure_future(fetch)
        for step in range(1, 5):
            lender.steps.step()
            await until(lambda: borrower.figures.hit_blocks == 2 * step)  # noqa: B023  # at once
        blocks, cause = await fetching
        assert (len(blocks), cause) == (8, None)


async def test_a_prompt_that_comes_to_the_peer_a_little_later_is_waited_for() -> None:
    patient = PeerSettings(patience_s=20, arrival_s=20)
    async with lent() as lender, borrowing(16, patient) as borrower:
        generation = prompt(0)
        addresses = lender.harness.admission.admit(generation).full_addresses(4)
        fetching = asyncio.ensure_future(borrower.fetched(addresses, lender.address))
        await until(lambda: lender.lending._followers)
        await lender.generate(generation)
        blocks, cause = await fetching
        assert (len(blocks), cause) == (8, None)


async def test_a_prefill_that_is_cancelled_gives_what_it_had() -> None:
    async with lent(held=True) as lender, borrowing(16) as borrower:
        await lender.generate(prompt(0))
        (sequence,) = lender.loop.scheduler
        fetch = borrower.fetched(sequence.full_addresses(4), lender.address)
        fetching = asyncio.ensure_future(fetch)
        lender.steps.step()
        await until(lambda: borrower.figures.hit_blocks == 2)
        lender.loop.command(lambda: lender.loop.cancel(sequence))
        blocks, cause = await fetching
        assert (len(blocks), cause) == (2, CacheMiss.EVICTED)


async def test_a_peer_of_another_layout_gives_nothing() -> None:
    blocks = contents(2, 64)
    async with lent(PlainMemory(64, 64)) as lender, borrowing(64, layout="other") as borrower:
        await lender.publish(blocks)
        assert await borrower.fetched(list(blocks), lender.address) == ([], CacheMiss.LAYOUT)


async def test_a_peer_of_the_same_layout_with_other_bytes_is_not_believed() -> None:
    blocks = contents(2, 128)
    async with lent(PlainMemory(64, 128)) as lender, borrowing(64) as borrower:
        await lender.publish(blocks)
        assert await borrower.fetched(list(blocks), lender.address) == ([], CacheMiss.CHECKSUM)


async def test_a_peer_without_a_place_gives_nothing() -> None:
    async with lent(door=Door(rules=PeerSettings(fetches=1))) as lender, borrowing(16) as borrower:
        waits = pb.FetchRequest(kv_layout_id=LAYOUT, addresses=bytes(16), wait_ms=60_000)
        call = lender.stub.Fetch(waits)
        await until(lambda: lender.lending._followers)
        assert await borrower.fetched([bytes(16)], lender.address) == ([], CacheMiss.UNREACHABLE)
        call.cancel()


async def test_nobody_there_is_unreachable() -> None:
    async with borrowing(64) as borrower:
        assert await borrower.fetched([bytes(16)], "127.0.0.1:1") == ([], CacheMiss.UNREACHABLE)


async def test_one_who_does_not_even_greet_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        async with borrowing(64, HASTY) as borrower:
            missed = await borrower.fetched([bytes(16)], f"{host}:{port}")
            assert missed == ([], CacheMiss.UNREACHABLE)


@pytest.mark.parametrize("peer", [None, "", "host", "host:port", "host:70000", "unix:/tmp/x", ":1"])
async def test_what_is_no_address_is_not_asked(peer: str | None) -> None:
    async with borrowing(64) as borrower:
        assert not borrower.supply.can_supply(Wanted(addresses=[bytes(16)], peer=peer))


async def test_nobody_waits_for_a_prompt_that_was_not_sent_there() -> None:
    patient = PeerSettings(patience_s=600, arrival_s=60, limit_s=3600)
    async with lent() as lender, borrowing(64, patient) as borrower:
        fetch = borrower.fetched([bytes(16)], lender.address, follows=False)
        assert await fetch == ([], CacheMiss.EVICTED)


async def test_a_peer_that_falls_silent_is_waited_for_so_long_and_no_longer() -> None:
    # It waits for a prompt that comes much later than patience lasts.
    rules = PeerSettings(patience_s=0.5, arrival_s=60)
    async with lent() as lender, borrowing(64, rules) as borrower:
        missed = await borrower.fetched([bytes(16)], lender.address)
        assert missed == ([], CacheMiss.TIMEOUT)
        await until(lambda: not lender.lending._followers)


async def test_each_block_renews_the_patience() -> None:
    rules = PeerSettings(patience_s=1, arrival_s=0)
    async with lent(held=True) as lender, borrowing(16, rules) as borrower:
        await lender.generate(prompt(0, blocks=28))
        (sequence,) = lender.loop.scheduler
        fetch = borrower.fetched(sequence.full_addresses(4), lender.address)
        fetching = asyncio.ensure_future(fetch)
        began = asyncio.get_running_loop().time()
        for step in range(1, 15):
            await asyncio.wait([fetching], timeout=0.1)
            lender.steps.step()
            await until(lambda: borrower.figures.hit_blocks == 2 * step)  # noqa: B023  # at once
        blocks, cause = await fetching
        assert (len(blocks), cause) == (28, None)
        assert asyncio.get_running_loop().time() - began > rules.patience_s


async def test_steps_of_other_prompts_renew_the_patience_of_one_whose_turn_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lending, "SIGN_S", 0.05)
    rules = PeerSettings(patience_s=0.5, arrival_s=0)
    async with lent(held=True, blocks=29) as lender, borrowing(16, rules) as borrower:
        await lender.generate(prompt(1, blocks=28))
        mine = prompt(0)
        addresses = lender.harness.admission.admit(mine).full_addresses(4)
        await lender.generate(mine)
        fetching = asyncio.ensure_future(borrower.fetched(addresses, lender.address))
        began = asyncio.get_running_loop().time()
        for step in range(1, 13):
            lender.steps.step()
            await until(lambda: lender.loop.progress.steps == step)  # noqa: B023  # at once
            await asyncio.wait([fetching], timeout=0.1)
        assert asyncio.get_running_loop().time() - began > rules.patience_s
        assert not borrower.figures.hit_blocks, "its turn has not come"
        lender.steps.free()
        blocks, cause = await fetching
        assert (len(blocks), cause) == (8, None)


async def test_a_peer_that_gives_a_little_now_and_then_is_not_waited_for_forever() -> None:
    rules = PeerSettings(patience_s=20, limit_s=0.5, arrival_s=0)
    async with lent(held=True) as lender, borrowing(16, rules) as borrower:
        await lender.generate(prompt(0))
        (sequence,) = lender.loop.scheduler
        lender.steps.step()
        await until(lambda: sequence.computed)
        got = await borrower.fetched(sequence.full_addresses(4), lender.address)
        assert (len(got[0]), got[1]) == (2, CacheMiss.TIMEOUT)


async def test_a_connection_that_is_cut_keeps_what_has_come() -> None:
    blocks = contents(32, MIB)
    async with lent(PlainMemory(32, MIB), blocks=32) as lender, borrowing(MIB) as borrower:
        await lender.publish(blocks)
        with proxy_to(lender.address) as proxy:
            got = []
            wanted = Wanted(addresses=list(blocks), peer=proxy.address)
            async for each in singly(borrower.supply.supply(wanted)):
                got.append(each)
                if len(got) == 2:
                    proxy.cut()
        assert got[-1] is CacheMiss.UNREACHABLE
        assert 2 < len(got) < 32
        assert all(is_block(each, blocks, at) for at, each in enumerate(got[:-1]))
        await lender.at_rest()


async def test_a_peer_that_dies_amid_a_transfer_costs_time_and_nothing_else() -> None:
    blocks = contents(32, MIB)
    async with borrowing(MIB) as borrower:
        async with lent(PlainMemory(32, MIB), blocks=32) as lender:
            await lender.publish(blocks)
            wanted = Wanted(addresses=list(blocks), peer=lender.address)
            given = singly(borrower.supply.supply(wanted))
            assert is_block(await anext(given), blocks, 0)
        rest = [each async for each in given]
        assert rest[-1] is CacheMiss.UNREACHABLE
        assert await borrower.fetched(list(blocks), lender.address) == ([], CacheMiss.UNREACHABLE)


async def test_a_peer_that_comes_back_is_another_life_and_serves() -> None:
    blocks = contents(2, 64)
    async with borrowing(64) as borrower:
        async with lent(PlainMemory(64, 64)) as lender:
            await lender.publish(blocks)
            assert len((await borrower.fetched(list(blocks), lender.address))[0]) == 2
        async with lent(PlainMemory(64, 64)) as other:
            assert await borrower.fetched(list(blocks), other.address) == ([], CacheMiss.EVICTED)


async def test_off_ends_at_once_what_is_on_its_way() -> None:
    patient = PeerSettings(patience_s=60, arrival_s=60)
    async with lent() as lender, borrowing(64, patient) as borrower:
        fetching = asyncio.ensure_future(borrower.fetched([bytes(16)], lender.address))
        await until(lambda: lender.lending._followers)
        borrower.switch.set(enabled=False)
        assert await fetching == ([], CacheMiss.OFF)
        assert not borrower.supply.can_supply(Wanted(addresses=[bytes(16)], peer=lender.address))
        await until(lambda: not lender.lending._followers)


async def test_off_drops_what_has_come_and_was_not_taken() -> None:
    blocks = contents(8, 64)
    async with lent(PlainMemory(64, 64)) as lender, borrowing(64) as borrower:
        await lender.publish(blocks)
        given = borrower.given(list(blocks), lender.address)
        assert is_block(await anext(given), blocks, 0)
        borrower.switch.set(enabled=False)
        await asyncio.sleep(0)
        assert [each async for each in given] == [CacheMiss.OFF]
        assert borrower.figures.misses == {CacheMiss.OFF: 7}


async def test_one_who_is_cancelled_ends_the_call() -> None:
    patient = PeerSettings(patience_s=60, arrival_s=60)
    async with lent() as lender, borrowing(64, patient) as borrower:
        fetching = asyncio.ensure_future(borrower.fetched([bytes(16)], lender.address))
        await until(lambda: lender.lending._followers)
        fetching.cancel()
        await asyncio.wait([fetching])
        assert fetching.cancelled()
        await until(lambda: not lender.lending._followers)


async def test_one_who_closes_early_ends_the_call() -> None:
    blocks = contents(32, MIB)
    async with lent(PlainMemory(32, MIB), blocks=32) as lender, borrowing(MIB) as borrower:
        await lender.publish(blocks)
        wanted = Wanted(addresses=list(blocks), peer=lender.address)
        async with aclosing(borrower.supply.supply(wanted)) as given:
            await anext(given)
        await until(lambda: not lender.lending._followers)
        assert borrower.figures.hit_blocks == 1
        assert not borrower.figures.misses


async def test_a_flipped_bit_ends_the_fetch_and_is_counted() -> None:
    blocks = contents(8, MIB)
    async with lent(PlainMemory(8, MIB), blocks=8) as lender, borrowing(MIB) as borrower:
        await lender.publish(blocks)
        with proxy_to(lender.address) as proxy:
            got, cause = await borrower.fetched(list(blocks)[:1], proxy.address)
            assert cause is None
            proxy.flip(2 * MIB + 12345)
            got, cause = await borrower.fetched(list(blocks), proxy.address)
        assert cause in {CacheMiss.CHECKSUM, CacheMiss.UNREACHABLE}
        assert got == list(blocks.values())[: len(got)]
        assert len(got) < 8
