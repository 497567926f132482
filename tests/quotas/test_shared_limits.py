"""Four codecs and a store are one where limits count, whatever becomes of clients and of codecs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import httpx
import pytest

from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher
from tests.quotas.codecs import CHAT, Codecs, codecs_of
from tests.quotas.over_limit import over_limit
from tests.waiting import PATIENCE_S, until

PER_MINUTE = 6000
TENANTS = (
    {"tenant": "greedy", "tokens_per_minute": PER_MINUTE},
    {"tenant": "fickle", "tokens_per_minute": 100_000_000, "max_concurrency": 1000},
    {"tenant": "mourned", "tokens_per_minute": 100_000_000, "max_concurrency": 2},
)
FOREVER = 3000
"""Tokens of an answer that nobody hears to its end."""


@pytest.fixture(scope="module")
def codecs(model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Codecs]:
    launcher = Launcher(folder=tmp_path_factory.mktemp("quotas"), environ={})
    with codecs_of(launcher, model_folder, TENANTS) as running:
        yield running


async def test_four_codecs_grant_one_limit(codecs: Codecs) -> None:
    granted = await over_limit(codecs, "greedy", PER_MINUTE, seconds=4, max_tokens=10)
    assert granted.share >= 0.98, granted
    assert not granted.excess, granted
    assert all(granted.tokens)
    await until(lambda: codecs.is_settled("greedy"))
    assert codecs.known("greedy")["settled"] == sum(granted.tokens)


async def test_what_clients_that_leave_had_put_aside_is_settled_or_given_back(
    codecs: Codecs,
) -> None:
    random = Random(6)  # noqa: S311  its numbers repeat

    async def leave(client: httpx.AsyncClient, tokens: int) -> None:
        body = codecs.body(FOREVER, stream=True)
        async with client.stream("POST", CHAT, json=body) as answer:
            assert answer.status_code == 200
            async for _ in answer.aiter_lines():
                tokens -= 1
                if tokens <= 0:
                    return

    async def hear(client: httpx.AsyncClient) -> None:
        answer = await client.post(CHAT, json=codecs.body(5))
        assert answer.status_code == 200

    clients = [codecs.client(at, "fickle") for at in range(len(codecs.doors))]
    await asyncio.gather(
        *(leave(client, random.randrange(30)) for client in clients for _ in range(10)),
        *(hear(client) for client in clients for _ in range(3)),
    )
    # Some go before they have heard anything at all.
    for client in clients:
        asked = asyncio.ensure_future(client.post(CHAT, json=codecs.body(FOREVER)))
        for _ in range(random.randrange(20)):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        await client.aclose()
    await until(lambda: codecs.is_settled("fickle"))
    known = codecs.known("fickle")
    assert known["settled"] > 0
    assert known["refunded"] > 0
    assert not known["lapsed"]


async def test_places_of_a_codec_that_is_killed_come_back(codecs: Codecs) -> None:
    """The last of all, since it leaves one less."""
    async with codecs.client(3, "mourned") as doomed, codecs.client(2, "mourned") as heir:
        body = codecs.body(FOREVER, stream=True)
        for _ in range(2):
            started = await doomed.send(doomed.build_request("POST", CHAT, json=body), stream=True)
            assert started.status_code == 200
        refused = await heir.post(CHAT, json=codecs.body(3))
        assert refused.status_code == 429
        assert "2 generations at a time" in refused.json()["error"]["message"]
        held = codecs.known("mourned")["reserved"]
        codecs.doors[3].process.kill()
        # A store ends leases when it is asked of their tenant, and the two may end one by one.
        async with asyncio.timeout(PATIENCE_S):
            while codecs.known("mourned")["lapsed"] < held:
                await heir.post(CHAT, json=codecs.body(3))
        assert (await heir.post(CHAT, json=codecs.body(3))).status_code == 200
    await until(lambda: codecs.is_settled("mourned"))
    assert codecs.known("mourned")["lapsed"] == held > 0
