"""A tenant's limits at the doors: what is refused, how it is told, and what is settled.

All of it by a codec alone, and by one that counts with others through a store.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.launcher.keys_command import create_key
from services.shared.access import opening
from services.shared.access.guard import Guard
from services.shared.access.opening import Access
from services.shared.access.quota import Quota
from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.settings import SecuritySettings
from services.shared.access.tenant_quotas import TenantQuotas
from services.shared.bug_boundary import RETRY_KEY
from services.shared.channel import open_channel
from services.shared.errors import Code
from services.shared.stream.events import Failed
from services.shared.stream.generation import PriorityClass
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.redis_server import RedisServer, redis_server
from tests.scripted_engine import Script
from tests.waiting import PATIENCE_S, until

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "hi"}],
}
TEXT = "one two three"


@dataclass(frozen=True, kw_only=True)
class Limited:
    """A codec with two tenants, of which `acme` has limits."""

    bed: Bed
    mine: httpx.AsyncClient
    other: httpx.AsyncClient
    quotas: TenantQuotas
    key: str

    @property
    def quota(self) -> Quota:
        return self.quotas.of("acme")


Make = Callable[..., AbstractAsyncContextManager[Limited]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(params=["alone", "shared"])
def counting(request: pytest.FixtureRequest, store: RedisServer) -> QuotaSettings:
    """Where limits are counted."""
    if request.param == "alone":
        return QuotaSettings()
    store.ask("FLUSHALL")
    return QuotaSettings(redis_url=f"redis://{store.address}", timeout_ms=5000)


@pytest.fixture
def limited(
    beds: BedMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counting: QuotaSettings
) -> Make:
    made: list[TenantQuotas] = []

    def noted(guard: Guard, quotas: TenantQuotas) -> Access:
        made.append(quotas)
        return Access(guard, quotas)

    monkeypatch.setattr(opening, "Access", noted)

    @asynccontextmanager
    async def make(script: Script | None = None, **limits: Any) -> AsyncIterator[Limited]:
        keys, tenants = tmp_path / "keys.json", tmp_path / "tenants.yaml"
        key, other = (create_key(keys, name, "").text for name in ("acme", "other"))
        tenants.write_text(json.dumps({"tenants": [{"tenant": "acme", **limits}]}))
        security = SecuritySettings(keys_file=keys, tenants_file=tenants, quotas=counting)
        engine = beds.engine(script or beds.says(TEXT))
        async with (
            beds.bed(engine, security=security) as bed,
            httpx.AsyncClient(base_url=bed.url, timeout=PATIENCE_S) as mine,
            httpx.AsyncClient(base_url=bed.url, timeout=PATIENCE_S) as others,
        ):
            mine.headers["x-api-key"], others.headers["x-api-key"] = key, other
            yield Limited(bed=bed, mine=mine, other=others, quotas=made[-1], key=key)

    return make


def settled(quota: Quota) -> bool:
    totals = quota.totals
    return not quota.running and totals.reserved == totals.settled + totals.refunded


async def test_the_tenant_of_a_key_goes_with_the_generation(limited: Make) -> None:
    body = BODY | {"tenant": "other", "user": "other", "metadata": {"tenant": "other"}}
    async with limited() as codec:
        headers = {"x-tenant": "other", "x-tokenway-tenant": "other"}
        await codec.mine.post(CHAT, json=body, headers=headers)
        await codec.other.post(CHAT, json=BODY | {"cache_salt": "s"})
        first, second = codec.bed.engine.generations
    assert first.quality_of_service.tenant == "acme"
    assert second.quality_of_service.tenant == "other"
    assert second.cache.salt
    assert not first.cache.salt


async def test_who_needs_no_key_has_no_tenant(beds: BedMaker) -> None:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed, httpx.AsyncClient() as client:
        answer = await client.post(f"{bed.url}{CHAT}", json=BODY)
        (generation,) = bed.engine.generations
    assert generation.quality_of_service.tenant is None
    assert not [name for name in answer.headers if "ratelimit" in name]


async def test_too_many_requests_are_told_in_each_protocols_words(limited: Make) -> None:
    async with limited(requests_per_minute=2) as codec:
        for _ in range(2):
            assert (await codec.mine.post(CHAT, json=BODY)).status_code == 200
        chat = await codec.mine.post(CHAT, json=BODY)
        messages = await codec.mine.post(MESSAGES, json=BODY)
        counted = await codec.mine.post("/v1/messages/count_tokens", json=BODY)
        assert (await codec.other.post(CHAT, json=BODY)).status_code == 200
        assert (await codec.mine.get("/v1/models")).status_code == 200
        async with open_channel(codec.bed.service.grpc) as channel:
            stub: Any = rpc.CodecServiceStub(channel)
            body = HttpBody(data=json.dumps(BODY).encode())
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Messages(body, metadata=(("x-api-key", codec.key),)).read()
    assert chat.status_code == messages.status_code == counted.status_code == 429
    assert chat.json()["error"]["type"] == "rate_limit_error"
    assert chat.json()["error"]["code"] == "rate_limit_exceeded"
    assert messages.json()["error"]["type"] == "rate_limit_error"
    assert "limit of 2 requests per minute" in messages.json()["error"]["message"]
    for answer in (chat, messages, counted):
        assert 1 <= int(answer.headers["retry-after"]) <= 45
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "rate_limit_error" in (caught.value.details() or "")
    trailing: Any = caught.value.trailing_metadata()
    assert dict(trailing)["anthropic-ratelimit-requests-limit"] == "2"
    assert dict(trailing)["anthropic-ratelimit-requests-remaining"] == "0"
    assert dict(trailing)["x-request-id"]
    assert int(dict(trailing)[RETRY_KEY]) >= 1


async def test_limits_stand_in_the_headers_of_both_protocols(limited: Make) -> None:
    async with limited(requests_per_minute=60, tokens_per_minute=10_000) as codec:
        chat = (await codec.mine.post(CHAT, json=BODY)).headers
        streamed = (await codec.mine.post(CHAT, json=BODY | {"stream": True})).headers
        messages = (await codec.mine.post(MESSAGES, json=BODY)).headers
        wrong = (await codec.mine.post(CHAT, json={})).headers
    for headers in (chat, streamed, wrong):
        assert headers["x-ratelimit-limit-requests"] == "60"
        assert 50 <= int(headers["x-ratelimit-remaining-requests"]) < 60
        assert headers["x-ratelimit-limit-tokens"] == "10000"
        assert 9000 < int(headers["x-ratelimit-remaining-tokens"]) <= 10_000
        for kind in ("requests", "tokens"):
            assert re.fullmatch(r"(\d+m)?\d+s|\d+ms", headers[f"x-ratelimit-reset-{kind}"])
    for kind in ("requests", "tokens"):
        assert int(messages[f"anthropic-ratelimit-{kind}-limit"]) >= 60
        assert int(messages[f"anthropic-ratelimit-{kind}-remaining"]) >= 50
        reset = messages[f"anthropic-ratelimit-{kind}-reset"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", reset)


async def test_a_refusal_at_the_limit_comes_before_the_body_and_again_without_ado(
    limited: Make, caplog: pytest.LogCaptureFixture
) -> None:
    async with limited(requests_per_minute=1) as codec:
        await codec.mine.post(CHAT, json=BODY)
        told = [await codec.mine.post(CHAT, content=b"no JSON") for _ in range(50)]
        assert {answer.status_code for answer in told} == {429}
        assert len({answer.headers["x-request-id"] for answer in told}) == 1
        assert "x-ratelimit-limit-requests" in told[-1].headers
        lines = [record for record in caplog.records if record.getMessage() == "request"]
        assert len(lines) <= 2


async def test_tokens_that_are_expected_are_refused_when_they_are_not_there(limited: Make) -> None:
    async with limited(tokens_per_minute=600) as codec:
        assert (await codec.mine.post(CHAT, json=BODY | {"max_tokens": 500})).status_code == 200
        spent = codec.quota.totals.settled
        assert 0 < spent < 100
        async with codec.quotas.reserve("acme", 500, 1):
            refused = await codec.mine.post(CHAT, json=BODY | {"max_tokens": 500})
        assert refused.status_code == 429
        assert "600 tokens per minute" in refused.json()["error"]["message"]
        assert settled(codec.quota)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_what_is_settled_is_the_usage_that_is_told(limited: Make, path: str) -> None:
    async with limited() as codec:
        usage = (await codec.mine.post(path, json=BODY)).json()["usage"]
        assert codec.quota.totals.settled == sum(
            usage.get(name, 0)
            for name in ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
        )
        assert settled(codec.quota)


async def test_a_stream_that_its_client_leaves_is_settled_with_what_was_generated(
    beds: BedMaker, limited: Make
) -> None:
    never = asyncio.Event()
    ids = beds.encoder.encode_text(TEXT)
    async with limited(lambda _: [ids, never], tokens_per_minute=10_000) as codec:
        body = BODY | {"stream": True}
        async with codec.mine.stream("POST", CHAT, json=body) as response:
            async for line in response.aiter_lines():
                if '"content":' in line and '"content":""' not in line:
                    break
            assert codec.quota.running == 1
        await until(lambda: not codec.quota.running)
        prompt = len(codec.bed.engine.generations[0].prompt_ids)
        assert codec.quota.totals.settled == prompt + len(ids)
        assert settled(codec.quota)


@pytest.mark.parametrize("accepts", [True, False])
async def test_what_fails_is_settled_with_what_was_computed_until_then(
    beds: BedMaker, limited: Make, accepts: bool
) -> None:
    failed = Failed(code=Code.UNAVAILABLE, message="gone")
    ids = beds.encoder.encode_text(TEXT)
    async with limited(lambda _: [ids, failed] if accepts else [failed]) as codec:
        codec.bed.engine.accepts = accepts
        await codec.mine.post(CHAT, json=BODY)
        prompt = len(codec.bed.engine.generations[0].prompt_ids)
        assert codec.quota.totals.settled == (prompt + len(ids) if accepts else 0)
        assert settled(codec.quota)


async def test_a_thousand_streams_at_the_limit_leave_others_alone(
    beds: BedMaker, limited: Make
) -> None:
    go_on = asyncio.Event()
    ids = beds.encoder.encode_text(TEXT)
    async with limited(lambda _: [ids, go_on], max_concurrency=2) as codec:
        running = [asyncio.ensure_future(codec.mine.post(CHAT, json=BODY)) for _ in range(2)]
        await until(lambda: codec.quota.running == 2)
        others = []
        for at in range(10):
            body, path = BODY | {"stream": True}, (CHAT, MESSAGES)[at % 2]
            batch = [asyncio.ensure_future(codec.mine.post(path, json=body)) for _ in range(100)]
            others.append(asyncio.ensure_future(codec.other.post(CHAT, json=BODY)))
            # It is taken while all of them come.
            await until(lambda: len(codec.bed.engine.generations) == 2 + len(others))
            more = await asyncio.gather(*batch)
            assert {answer.status_code for answer in more} == {429}
            assert "2 generations at a time" in more[0].json()["error"]["message"]
            assert int(more[0].headers["retry-after"]) >= 1
        go_on.set()
        answers = [await answer for answer in (*running, *others)]
        assert [answer.status_code for answer in answers] == [200] * 12
        assert settled(codec.quota)


async def test_choices_are_generations_of_their_own(limited: Make) -> None:
    async with limited(max_concurrency=2) as codec:
        async with codec.quotas.reserve("acme", 1, 1):
            answer = await codec.mine.post(CHAT, json=BODY | {"n": 2})
            assert answer.status_code == 429
        assert (await codec.mine.post(CHAT, json=BODY | {"n": 2})).status_code == 200


async def test_longer_answers_than_a_tenant_may_have_end_at_its_limit(limited: Make) -> None:
    async with limited(max_tokens=7) as codec:
        for asked in (50, 3, None):
            body = {name: value for name, value in BODY.items() if name != "max_tokens"}
            body |= {} if asked is None else {"max_tokens": asked}
            assert (await codec.mine.post(CHAT, json=body)).status_code == 200
        limits = [each.stopping.max_tokens for each in codec.bed.engine.generations]
    assert limits == [7, 3, 7]


async def test_a_tenant_sees_and_asks_for_its_own_models(limited: Make) -> None:
    async with limited(models=["claude-small"]) as codec:
        listed = (await codec.mine.get("/v1/models")).json()
        assert [entry["id"] for entry in listed["data"]] == ["claude-small"]
        assert (await codec.mine.get(f"/v1/models/{MODEL}")).status_code == 404
        refused = await codec.mine.post(CHAT, json=BODY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
        taken = await codec.mine.post(CHAT, json=BODY | {"model": "claude-small"})
        assert taken.status_code == 200
        assert len((await codec.other.get("/v1/models")).json()["data"]) == 2
    async with limited(models=["none-of-ours"]) as codec:
        listed = (await codec.mine.get("/v1/models")).json()
        assert (listed["data"], listed["first_id"]) == ([], None)


async def test_a_tenant_of_batches_waits_whatever_it_asks(limited: Make) -> None:
    async with limited(priority="batch") as codec:
        await codec.mine.post(CHAT, json=BODY | {"priority": -5})
        await codec.other.post(CHAT, json=BODY)
        classes = [each.quality_of_service.priority_class for each in codec.bed.engine.generations]
    assert classes == [PriorityClass.BATCH, PriorityClass.INTERACTIVE]


async def test_the_weight_of_a_tenant_goes_with_its_generations(limited: Make) -> None:
    async with limited(weight=2.5) as codec:
        await codec.mine.post(CHAT, json=BODY | {"weight": 1000})
        await codec.other.post(CHAT, json=BODY)
        weights = [each.quality_of_service.weight for each in codec.bed.engine.generations]
    assert weights == [2.5, None]
