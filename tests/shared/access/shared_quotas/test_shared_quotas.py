"""Several processes are one where limits are counted."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from time import monotonic

import pytest

from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.shared_quotas.answer import taking
from services.shared.access.shared_quotas.shared_quotas import SharedQuotas
from services.shared.access.shared_quotas.store_address import store_address
from services.shared.access.shared_quotas.store_client import StoreClient
from services.shared.access.shared_quotas.store_connection import StoreConnection
from services.shared.errors import RateLimited
from tests.shared.access.shared_quotas.sharing import TIMEOUT_MS, Commons
from tests.waiting import PATIENCE_S, until

A_MINUTES_WORTH = 1_000_000


async def both(commons: Commons, stack: AsyncExitStack) -> tuple[SharedQuotas, SharedQuotas]:
    return (
        await stack.enter_async_context(commons.process()),
        await stack.enter_async_context(commons.process()),
    )


async def test_requests_of_all_processes_count_together(commons: Commons) -> None:
    commons.limit("acme", requests_per_minute=3)
    async with AsyncExitStack() as stack:
        one, other = await both(commons, stack)
        await one.enter("acme")
        await other.enter("acme")
        await one.enter("acme")
        with pytest.raises(RateLimited, match="limit of 3 requests per minute") as caught:
            await other.enter("acme")
    assert caught.value.retry_after_s == pytest.approx(20, abs=15)


async def test_tokens_of_all_processes_count_together(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=1000)
    async with AsyncExitStack() as stack:
        one, other = await both(commons, stack)
        async with one.reserve("acme", 600, 1) as reservation:
            with pytest.raises(RateLimited, match="limit of 1000 tokens per minute"):
                async with other.reserve("acme", 600, 1):
                    pass
            reservation.used = 100
        await until(lambda: commons.is_settled("acme"))
        async with other.reserve("acme", 600, 1):
            pass
        await until(lambda: commons.is_settled("acme"))
    known = commons.known("acme")
    assert (known["reserved"], known["settled"], known["refunded"]) == (1200, 100, 1100)


async def test_generations_of_all_processes_count_together(commons: Commons) -> None:
    commons.limit("acme", max_concurrency=2)
    async with AsyncExitStack() as stack:
        one, other = await both(commons, stack)
        async with one.reserve("acme", 1, 1), other.reserve("acme", 1, 1):
            with pytest.raises(RateLimited, match="limit of 2 generations at a time"):
                async with one.reserve("acme", 1, 1):
                    pass
            refusal = one.refusal("acme")
            assert isinstance(refusal, RateLimited)
        await until(lambda: commons.is_settled("acme"))
        async with one.reserve("acme", 1, 8):
            assert commons.known("acme")["running"] == 8


async def test_what_came_to_more_is_paid_too(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=1000)
    async with commons.process() as quotas:
        async with quotas.reserve("acme", 100, 1) as reservation:
            reservation.used = 5000
        await until(lambda: commons.is_settled("acme"))
        assert commons.known("acme")["settled"] == 5000
        with pytest.raises(RateLimited) as caught:
            async with quotas.reserve("acme", 1, 1):
                pass
    assert (caught.value.retry_after_s or 0) > 200


async def test_what_is_left_is_known_in_each_process(commons: Commons) -> None:
    commons.limit("acme", requests_per_minute=100, tokens_per_minute=1000)
    async with AsyncExitStack() as stack:
        one, other = await both(commons, stack)
        await one.enter("acme")
        async with one.reserve("acme", 500, 1):
            await other.enter("acme")
            requests, tokens = other.of("acme").requests, other.of("acme").tokens
    assert requests is not None
    assert tokens is not None
    assert (requests.limit, requests.remaining) == (100, 98)
    assert tokens.limit == 1000
    assert 500 <= tokens.remaining < 1000


async def test_who_has_no_limits_needs_no_store(commons: Commons) -> None:
    commons.limit("free")
    async with commons.process() as quotas:
        for tenant in ("free", None):
            await quotas.enter(tenant)
            async with quotas.reserve(tenant, 10**9, 1000):
                assert quotas.refusal(tenant) is None
        assert quotas.counts.checks == 0
        assert not commons.known("free")


async def test_another_limit_is_neither_a_present_nor_a_loss(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=10_000)
    async with commons.process() as quotas:
        async with quotas.reserve("acme", 5000, 1) as reservation:
            reservation.used = 5000
        await until(lambda: commons.is_settled("acme"))
        commons.limit("acme", tokens_per_minute=100_000_000)
        async with quotas.reserve("acme", 1, 1):
            share = quotas.of("acme").tokens
    assert share is not None
    assert share.limit == 100_000_000
    assert 50_000_000 <= share.remaining + 1 < 100_000_000


async def test_many_at_once_never_get_more_than_there_is(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=A_MINUTES_WORTH)
    granted = 0
    began = monotonic()

    async def ask(quotas: SharedQuotas) -> None:
        nonlocal granted
        try:
            async with quotas.reserve("acme", A_MINUTES_WORTH // 10, 1) as reservation:
                granted += 1
                reservation.used = A_MINUTES_WORTH // 10
        except RateLimited:
            pass

    async with AsyncExitStack() as stack:
        one, other = await both(commons, stack)
        await asyncio.gather(*(ask(quotas) for quotas in (one, other) for _ in range(50)))
        await until(lambda: commons.is_settled("acme"))
    minutes = (monotonic() - began) / 60
    assert 10 <= granted <= 10 * (1 + minutes)


async def test_who_stops_waiting_leaves_nothing_behind(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=1_000_000, max_concurrency=100)
    async with commons.process() as quotas:

        async def ask() -> None:
            async with quotas.reserve("acme", 1000, 1):
                await asyncio.Event().wait()

        for pauses in range(20):
            asking = asyncio.ensure_future(ask())
            for _ in range(pauses):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        async with quotas.reserve("acme", 1, 1):
            pass
        await until(lambda: commons.is_settled("acme"))
        assert quotas.of("acme").running == 0


async def test_what_is_over_when_a_process_ends_is_told_before(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=1_000_000)
    async with commons.process() as quotas:
        for _ in range(1000):
            async with quotas.reserve("acme", 10, 1) as reservation:
                reservation.used = 3
    assert commons.is_settled("acme")
    assert commons.known("acme")["settled"] == 3000


async def test_what_a_process_held_that_died_is_settled_with_its_lease(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=1_000_000, max_concurrency=1)
    address = store_address(f"redis://{commons.server.address}", QuotaSettings())
    dying = StoreClient(StoreConnection(address), commons.prefix, TIMEOUT_MS / 1000, lease_s=1)
    await dying.answers([taking("acme", commons.tenants["acme"], "gone/1:500:1", 0)])
    await dying.close()
    assert commons.held("acme") == 1
    async with commons.process() as living:

        async def is_granted() -> bool:
            try:
                async with living.reserve("acme", 100, 1):
                    return True
            except RateLimited:
                return False

        refused = 0
        async with asyncio.timeout(PATIENCE_S):
            while not await is_granted():
                refused += 1
    assert refused
    assert commons.is_settled("acme")
    known = commons.known("acme")
    assert (known["lapsed"], known["settled"], known["refunded"]) == (500, 500, 100)


async def test_what_goes_on_is_renewed_and_held_again_by_a_store_that_lost_it(
    commons: Commons,
) -> None:
    commons.limit("acme", tokens_per_minute=1_000_000, max_concurrency=3)
    async with commons.process(lease_s=1, timeout_ms=300) as quotas:
        async with quotas.reserve("acme", 500, 2) as reservation:
            first = commons.leases("acme")
            await until(lambda: commons.leases("acme") != first)
            commons.server.ask("FLUSHALL")
            await until(lambda: commons.known("acme"))
            assert commons.known("acme")["running"] == 2
            reservation.used = 20
        await until(lambda: commons.is_settled("acme"))
        assert commons.known("acme")["settled"] == 20
        assert quotas.counts.late == 0


async def test_an_end_that_comes_after_its_lease_changes_nothing(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=1_000_000)
    async with commons.process() as quotas:
        async with quotas.reserve("acme", 500, 1):
            (member,) = commons.leases("acme")
            commons.server.ask("ZADD", f"{commons.prefix}:{{acme}}:held", 1, member)
            async with quotas.reserve("acme", 1, 1):
                pass
        await until(lambda: quotas.counts.late == 1)
        assert commons.is_settled("acme")
        assert commons.known("acme")["lapsed"] == 500


async def test_scripts_that_a_store_forgot_are_told_again(commons: Commons) -> None:
    commons.limit("acme", requests_per_minute=10)
    async with commons.process() as quotas:
        await quotas.enter("acme")
        commons.server.ask("SCRIPT", "FLUSH")
        await asyncio.gather(*(quotas.enter("acme") for _ in range(4)))
        assert quotas.counts.failures == 0
    assert commons.known("acme")["requests"] < 6


async def test_what_a_store_knows_of_who_does_not_come_ends(commons: Commons) -> None:
    commons.limit("acme", requests_per_minute=10, tokens_per_minute=600, max_concurrency=1)
    async with commons.process() as quotas:
        await quotas.enter("acme")
        async with quotas.reserve("acme", 1, 1) as reservation:
            reservation.used = 1200
        await until(lambda: commons.is_settled("acme"))
    left_ms = commons.server.ask("PTTL", f"{commons.prefix}:{{acme}}:state")
    assert 120_000 < left_ms < 200_000
