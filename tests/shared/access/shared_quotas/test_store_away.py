"""A store that is down, dies, hangs or comes back: what counts meanwhile, and what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.shared.access.quota_settings import OnFailure
from services.shared.access.shared_quotas import store_link
from services.shared.access.shared_quotas.shared_quotas import SharedQuotas
from services.shared.errors import RateLimited, Unavailable
from tests.redis_server import RedisServer, redis_server
from tests.shared.access.shared_quotas.sharing import Commons
from tests.waiting import PATIENCE_S, until

SOON_MS = 100
LOCAL, ALLOW, REFUSE = OnFailure


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that a test may kill."""
    with redis_server(tmp_path) as running:
        yield running


async def spend(quotas: SharedQuotas, tokens: int) -> None:
    async with quotas.reserve("acme", tokens, 1) as reservation:
        reservation.used = tokens


def left(quotas: SharedQuotas) -> int:
    share = quotas.of("acme").tokens
    assert share is not None
    return share.remaining


def told(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


async def test_a_store_that_is_down_at_the_start_is_found_when_it_comes(
    commons: Commons, caplog: pytest.LogCaptureFixture
) -> None:
    commons.limit("acme", tokens_per_minute=1000, requests_per_minute=2)
    commons.server.kill()
    async with commons.process(processes=2) as quotas:
        assert not quotas.is_shared
        await quotas.enter("acme")
        with pytest.raises(RateLimited, match="limit of 1 requests per minute"):
            await quotas.enter("acme")
        await spend(quotas, 400)
        with pytest.raises(RateLimited, match="limit of 500 tokens per minute"):
            await spend(quotas, 400)
        assert told(caplog, "TENANTS' LIMITS ARE NOT SHARED") == 1
        assert "this process alone counts, and grants 1/2" in caplog.text
        commons.server.start()
        await until(lambda: quotas.is_shared)
        assert told(caplog, "are shared again") == 1
        await quotas.enter("acme")
        await spend(quotas, 600)
        assert quotas.questions == {"answered": 2, "unanswered": 4, "lost": 0, "late": 0}
        await until(lambda: commons.is_settled("acme"))
        assert commons.known("acme")["settled"] == 600


async def test_a_store_that_dies_leaves_each_process_its_part_of_what_was_left(
    commons: Commons, caplog: pytest.LogCaptureFixture
) -> None:
    commons.limit("acme", tokens_per_minute=1_000_000)
    async with commons.process(processes=4) as quotas:
        await spend(quotas, 600_000)
        await until(lambda: commons.is_settled("acme"))
        commons.server.kill()
        await spend(quotas, 10_000)
        # As much as 400,000 of a million are 100,000 of 250,000, but for what flowed in.
        assert 90_000 <= left(quotas) < 200_000
        for _ in range(5):
            await spend(quotas, 1000)
        assert told(caplog, "TENANTS' LIMITS ARE NOT SHARED") == 1
        totals = quotas.of("acme").totals
        assert totals.reserved == totals.settled + totals.refunded == 615_000


async def test_without_a_store_nobody_is_limited_where_that_is_wished(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=10, requests_per_minute=1, max_concurrency=1)
    async with commons.process(on_failure=ALLOW) as quotas:
        commons.server.kill()
        for _ in range(10):
            await quotas.enter("acme")
            assert quotas.refusal("acme") is None
            await spend(quotas, 1000)
        assert quotas.of("acme").totals.settled == 10_000


async def test_without_a_store_who_has_limits_is_refused_where_that_is_wished(
    commons: Commons,
) -> None:
    commons.limit("acme", tokens_per_minute=1000, requests_per_minute=10)
    commons.limit("free")
    commons.server.kill()
    async with commons.process(on_failure=REFUSE) as quotas:
        refusal = quotas.refusal("acme")
        assert isinstance(refusal, Unavailable)
        assert refusal.retry_after_s
        with pytest.raises(Unavailable):
            await quotas.enter("acme")
        with pytest.raises(Unavailable):
            await spend(quotas, 1)
        assert quotas.refusal("free") is None
        await quotas.enter("free")
        async with quotas.reserve("free", 1, 1):
            pass
        commons.server.start()
        await until(lambda: quotas.is_shared)
        await quotas.enter("acme")
        await spend(quotas, 1)


@pytest.mark.parametrize("policy", OnFailure)
async def test_nobody_waits_for_a_store_that_hangs(
    commons: Commons, policy: OnFailure, caplog: pytest.LogCaptureFixture
) -> None:
    commons.limit("acme", tokens_per_minute=10_000, requests_per_minute=1000)
    async with commons.process(on_failure=policy, timeout_ms=SOON_MS) as quotas:
        await until(lambda: quotas.is_shared)
        commons.server.suspend()
        try:
            # All of them end while it hangs.
            async with asyncio.timeout(PATIENCE_S):
                ends = await asyncio.gather(
                    *(spend(quotas, 10) for _ in range(50)),
                    *(quotas.enter("acme") for _ in range(50)),
                    return_exceptions=True,
                )
            await until(lambda: not quotas.is_shared)
        finally:
            commons.server.resume()
        assert told(caplog, "TENANTS' LIMITS ARE NOT SHARED") == 1
        expected = Unavailable if policy is REFUSE else type(None)
        assert {type(end) for end in ends} == {expected}
        await until(lambda: quotas.is_shared)
        # What it took for those that did not wait for it is given back or settled.
        await until(lambda: commons.known("acme") and commons.is_settled("acme"))
        totals = quotas.of("acme").totals
        assert totals.reserved == totals.settled + totals.refunded
        assert quotas.counts.lost == quotas.counts.late == 0


async def test_what_ends_while_the_store_is_away_is_told_when_it_is_back(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=10_000, max_concurrency=10)
    async with commons.process(timeout_ms=SOON_MS) as quotas:
        async with quotas.reserve("acme", 1000, 1) as reservation:
            assert commons.held("acme") == 1
            commons.server.suspend()
            reservation.used = 10
        await until(lambda: not quotas.is_shared)
        commons.server.resume()
        await until(lambda: commons.is_settled("acme"))
        assert commons.known("acme")["settled"] == 10


async def test_what_waits_for_a_store_is_bounded_and_what_is_lost_is_counted(
    commons: Commons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_link, "MOST_KEPT", 5)
    commons.limit("acme", tokens_per_minute=10_000)
    async with commons.process() as quotas:
        running = [quotas.reserve("acme", 10, 1) for _ in range(8)]
        for one in running:
            await one.__aenter__()
        commons.server.kill()
        for one in running:
            await one.__aexit__(None, None, None)
        assert quotas.counts.lost == 3
    assert quotas.counts.lost == 8


async def test_a_store_that_refuses_to_write_is_away(commons: Commons) -> None:
    commons.limit("acme", tokens_per_minute=10_000)
    async with commons.process() as quotas:
        commons.server.ask("CONFIG", "SET", "maxmemory", "1")
        await spend(quotas, 10)
        assert not quotas.is_shared
        commons.server.ask("CONFIG", "SET", "maxmemory", "0")
        await until(lambda: quotas.is_shared)
        await spend(quotas, 10)
        await until(lambda: commons.is_settled("acme"))
        assert commons.known("acme")["settled"] == 10


async def test_a_connection_that_was_cut_while_nobody_asked_is_made_anew(commons: Commons) -> None:
    commons.limit("acme", requests_per_minute=10)
    async with commons.process() as quotas:
        await quotas.enter("acme")
        commons.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0)
        for _ in range(3):
            await quotas.enter("acme")
        await until(lambda: quotas.is_shared)
        assert quotas.counts.failures <= 1
