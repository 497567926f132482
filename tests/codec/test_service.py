"""The codec as a whole: when it is ready, what it logs, how traces go through it."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any

import httpx
import pytest

from services.codec.service import serving_codec
from services.codec.settings import LimitSettings
from services.shared.digest import token_digest
from services.shared.stream.events import CancelReason
from services.shared.stream.load import ReplicaState
from tests.codec_bed import MODEL, BedMaker
from tests.scripted_engine import serving_engine
from tests.waiting import until

BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "a secret thing"}],
}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tokenizer_fingerprint": "00"}, "tokenizer or chat template"),
        ({"vocabulary_size": 7}, "vocabulary has 7 tokens"),
    ],
)
async def test_engine_with_other_tokens_is_refused_loudly(
    beds: BedMaker, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], reason: str
) -> None:
    engine = beds.engine(beds.says("fine"))
    for name, value in changes.items():
        setattr(engine.describes, name, value)
    async with serving_engine(engine) as endpoint:
        settings = beds.settings(endpoint)
        async with serving_codec(settings, beds.folder, beds.encoder) as service:
            await until(lambda: reason in (service.ready.fault or ""))
            async with httpx.AsyncClient(base_url=f"http://{service.http}") as client:
                assert (await client.get("/healthz")).status_code == 200
                ready = await client.get("/readyz")
                answer = await client.post("/v1/messages", json=BODY)
            assert (ready.status_code, answer.status_code) == (503, 503)
            assert reason in ready.json()["reason"]
            assert reason in answer.json()["error"]["message"]
    assert any(reason in r.getMessage() for r in caplog.records if r.levelno == logging.ERROR)
    assert engine.submissions == []


async def test_readiness_follows_the_engine(beds: BedMaker) -> None:
    engine = beds.engine(beds.says("fine"))
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url) as client:
        assert (await client.get("/readyz")).status_code == 200
        engine.state = ReplicaState.DRAINING
        await until(lambda: bed.service.ready.fault)
        assert (await client.get("/readyz")).status_code == 503
        bed.service.leave()
        assert "draining" in (await client.get("/readyz")).text


async def test_one_line_for_each_request_tells_counts_and_digests_but_no_content(
    beds: BedMaker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    trace_id = "ab" * 16
    engine = beds.engine(beds.says("a confidential answer"))
    engine.cached_tokens = 2
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url) as client:
        headers = {"traceparent": f"00-{trace_id}-{'cd' * 8}-01"}
        answer = await client.post("/v1/messages", json=BODY, headers=headers)
        assert answer.headers["x-trace-id"] == trace_id
        await client.post("/v1/messages", json=BODY | {"temperature": "hot secret"})
    submission = engine.submissions[0]
    assert submission.traceparent.split("-")[1] == trace_id
    answered, refused = (r for r in caplog.records if r.getMessage() == "request")
    assert vars(answered)["trace"].trace_id == trace_id
    fields = vars(answered)["fields"]
    sent = beds.encoder.encode_text("a confidential answer")
    assert (
        fields
        | {
            "prompt_tokens": len(submission.generation.prompt_ids),
            "cached_tokens": 2,
            "completion_tokens": len(sent),
            "finish_reason": "end_of_text",
            "prompt_digest": token_digest(submission.generation.prompt_ids),
            "output_digest": token_digest(sent),
            "status": 200,
            "path": "/v1/messages",
        }
        == fields
    )
    refused_fields = vars(refused)["fields"]
    assert (refused_fields["error"], refused_fields["field"]) == ("InvalidType", "temperature")
    told = json.dumps([vars(record) for record in caplog.records], default=str)
    assert "secret" not in told
    assert "confidential" not in told


async def test_codec_finds_an_engine_that_comes_back(beds: BedMaker) -> None:
    engine = beds.engine(beds.says("fine"))
    async with serving_engine(engine) as endpoint:
        pass
    async with (
        serving_codec(beds.settings(endpoint), beds.folder, beds.encoder) as service,
        httpx.AsyncClient(base_url=f"http://{service.http}") as client,
    ):
        for _ in range(2):
            assert (await client.post("/v1/messages", json=BODY)).status_code == 503
            async with serving_engine(engine, endpoint):
                await until(lambda: service.ready.fault is None)
                assert (await client.post("/v1/messages", json=BODY)).status_code == 200
            await until(lambda: service.ready.fault)


async def test_answers_that_do_not_end_in_time_are_told_so(beds: BedMaker) -> None:
    never = asyncio.Event()
    engine = beds.engine(lambda _: [beds.encoder.encode_text("so far"), never])
    async with httpx.AsyncClient(timeout=60) as client:
        async with beds.bed(engine) as bed:
            url = f"{bed.url}/v1/messages"
            streamed = asyncio.ensure_future(client.post(url, json=BODY | {"stream": True}))
            whole = asyncio.ensure_future(client.post(url, json=BODY))
            await until(lambda: len(engine.submissions) == 2)
            await bed.service.drain(0.1)
        assert "event: error" in (await streamed).text
        assert (await whole).status_code == 503


async def test_long_prompts_do_not_stop_the_event_loop(beds: BedMaker) -> None:
    """Check 109."""
    engine = beds.engine(beds.says("fine"))
    engine.describes.context_length = 1_000_000
    text = " ".join(f"word{n} is here." for n in range(15_000))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    encode = beds.encoder.encode_with_head

    def counted(conversation: Any, tenant: str) -> Any:
        before = turns
        ids = encode(conversation, tenant)
        during.append(turns - before)
        return ids

    during: list[int] = []
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url, timeout=60) as client:
        counting = asyncio.ensure_future(count())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(beds.encoder, "encode_with_head", counted)
            body = BODY | {"messages": [{"role": "user", "content": text}]}
            assert (await client.post("/v1/messages", json=body)).status_code == 200
        counting.cancel()
    assert during[0] > 10


async def test_what_clients_leave_is_free_for_others(beds: BedMaker) -> None:
    engine = beds.engine(lambda _: [beds.encoder.encode_text("so far"), asyncio.Event()])
    limits = LimitSettings(max_concurrency=16)
    bodies = [BODY, BODY | {"stream": True}] * 8
    async with beds.bed(engine, lambda s: replace(s, limits=limits)) as bed:
        for wave in (1, 2, 3):
            async with httpx.AsyncClient(base_url=bed.url, timeout=60) as client:
                asking = [
                    asyncio.ensure_future(client.post("/v1/messages", json=body)) for body in bodies
                ]
                await until(lambda: len(engine.submissions) == 16 * wave)  # noqa: B023 same turn
                for task in asking:
                    task.cancel()
            await until(lambda: len(engine.cancels) == 16 * wave)  # noqa: B023 same turn
    assert set(engine.cancels) == {CancelReason.CLIENT_GONE}
