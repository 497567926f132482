"""What callers read of keys that are not taken, and what the log reads."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anthropic
import grpc
import httpx
import openai
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.codec.doors import RPC_SERVICE
from services.launcher.keys_command import create_key
from services.shared.access import followed_file
from services.shared.access.guard import WRONG_KEY
from services.shared.access.key_file import changing_keys
from services.shared.access.settings import SecuritySettings
from services.shared.channel import open_channel
from tests.codec_bed import MODEL, BedMaker
from tests.security.guarded import BODY, TENANT, Guarded, code_of, guarded_by
from tests.shared.access.signer import Signer
from tests.waiting import until

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


@pytest.fixture
async def mine(
    beds: BedMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Guarded]:
    """A codec of one test alone, that looks at its file all the time."""
    monkeypatch.setattr(followed_file, "INTERVAL_S", 0.01)
    async with guarded_by(beds, tmp_path / "keys.json") as guarded:
        yield guarded


async def test_both_protocols_take_a_key_either_way(mine: Guarded) -> None:
    url, key = mine.bed.url, mine.key
    for path in (CHAT, MESSAGES):
        for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}):
            answer = await mine.client.post(path, json=BODY, headers=headers)
            assert answer.status_code == 200
    by_key = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
    by_token = anthropic.AsyncAnthropic(base_url=url, auth_token=key, max_retries=0)
    for sdk in (by_key, by_token):
        async with sdk:
            message = await sdk.messages.create(
                model=MODEL, max_tokens=5, messages=[{"role": "user", "content": "hi"}]
            )
            assert message.content
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as by_openai:
        assert (await by_openai.models.list()).data


async def test_wrong_keys_are_told_in_each_protocols_words(mine: Guarded) -> None:
    bed = mine.bed
    with pytest.raises(openai.AuthenticationError) as by_openai:
        await bed.openai.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}]
        )
    assert by_openai.value.code == "invalid_api_key"
    assert by_openai.value.type == "invalid_request_error"
    with pytest.raises(anthropic.AuthenticationError) as by_anthropic:
        await bed.anthropic.messages.create(
            model=MODEL, max_tokens=5, messages=[{"role": "user", "content": "hi"}]
        )
    told = cast(Any, by_anthropic.value.body)
    assert told["error"]["type"] == "authentication_error"
    assert told["request_id"] == by_anthropic.value.response.headers["request-id"]
    async with open_channel(bed.service.grpc) as channel:
        stub: Any = rpc.CodecServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Messages(HttpBody()).read()
    assert json.loads(caught.value.details() or "")["error"]["type"] == "authentication_error"
    assert dict(cast(Any, caught.value.trailing_metadata()))["x-request-id"]


async def test_a_new_key_counts_and_a_revoked_one_does_not_without_a_restart(
    mine: Guarded,
) -> None:
    client, keys_file = mine.client, mine.keys_file

    async def status(text: str) -> int:
        return (await client.get("/v1/models", headers={"x-api-key": text})).status_code

    other = create_key(keys_file, TENANT, "other").text
    while await status(other) != 200:
        pass
    with changing_keys(keys_file) as records:
        records[0] = replace(records[0], revoked=datetime.now(UTC))
    while await status(mine.key) != 401:
        pass
    keys_file.write_text("broken")
    assert await status(other) == 200
    assert mine.bed.service.ready.fault is None


async def test_all_wrong_keys_get_the_same_words(mine: Guarded) -> None:
    client, keys_file, key = mine.client, mine.keys_file, mine.key
    expired = create_key(keys_file, TENANT, "", datetime(2020, 1, 1, tzinfo=UTC)).text
    for text in (expired, key[:-1], key[:11], "sk-other", "a.b.c"):
        answer = await client.get("/v1/models", headers={"x-api-key": text})
        assert answer.status_code == 401
        assert answer.json()["error"]["message"] == WRONG_KEY


async def test_tokens_are_taken_where_a_signer_is_known(
    beds: BedMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    signer = Signer()
    jwt = signer.settings(tmp_path / "jwks.json", leeway_s=0)
    wrong = [
        signer.token({"aud": "other"}),
        signer.token({"iss": "other"}),
        signer.token({"exp": 1}),
        signer.token(headers={"kid": "other"}),
        Signer().token(),
        "a.b.c",
    ]
    async with guarded_by(beds, tmp_path / "keys.json", jwt=jwt) as guarded:

        async def answer(text: str) -> httpx.Response:
            headers = {"authorization": f"Bearer {text}"}
            return await guarded.client.post(CHAT, json=BODY, headers=headers)

        assert (await answer(signer.token())).status_code == 200
        assert (await answer(guarded.key)).status_code == 200
        told = [await answer(text) for text in wrong]
    assert {each.status_code for each in told} == {401}
    assert {each.json()["error"]["message"] for each in told} == {WRONG_KEY}
    assert all(text not in caplog.text for text in wrong)


@pytest.mark.parametrize(
    ("security", "headers", "status"),
    [
        (SecuritySettings(allowed_addresses=("10.0.0.0/8",)), {}, 403),
        (SecuritySettings(allowed_addresses=("127.0.0.1",)), {}, 200),
        (SecuritySettings(allowed_addresses=("10.0.0.0/8",)), {"x-forwarded-for": "10.0.0.1"}, 403),
        (
            SecuritySettings(allowed_addresses=("10.0.0.0/8",), trusted_proxies=("127.0.0.0/8",)),
            {"x-forwarded-for": "10.0.0.1"},
            200,
        ),
        (
            SecuritySettings(allowed_addresses=("127.0.0.1",), trusted_proxies=("127.0.0.0/8",)),
            {"x-forwarded-for": "10.0.0.1"},
            403,
        ),
    ],
)
async def test_addresses_that_are_not_allowed_are_refused_at_both_doors(
    beds: BedMaker, security: SecuritySettings, headers: dict[str, str], status: int
) -> None:
    engine = beds.engine(beds.says("fine"))
    async with beds.bed(engine, security=security) as bed, httpx.AsyncClient() as client:
        chat = await client.get(f"{bed.url}/v1/models", headers=headers)
        other = await client.get(
            f"{bed.url}/v1/models", headers={**headers, "anthropic-version": "2023-06-01"}
        )
        code = await code_of(bed, f"/{RPC_SERVICE}/ListModels", tuple(headers.items()))
    assert chat.status_code == other.status_code == status
    assert code is (grpc.StatusCode.OK if status == 200 else grpc.StatusCode.PERMISSION_DENIED)
    if status == 403:
        assert [answer.json()["error"]["type"] for answer in (chat, other)] == [
            "permission_error"
        ] * 2


async def test_the_log_tells_who_asked_and_never_the_key(
    mine: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    client, key = mine.client, mine.key
    caplog.set_level(logging.INFO)
    await client.post(CHAT, json=BODY, headers={"authorization": f"Bearer {key}"})
    wrong = key[:-4] + "wrng"
    refused = [await client.get("/v1/models", headers={"x-api-key": wrong}) for _ in range(20)]

    def told(message: str) -> list[dict[str, Any]]:
        return [vars(r)["fields"] for r in caplog.records if r.getMessage() == message]

    await until(lambda: told("request"))
    (line,) = told("request")
    assert (line["tenant"], line["key"]) == (TENANT, key[:11])
    (denied,) = told("access refused")
    assert (denied["cause"], denied["address"]) == ("unknown key", "127.0.0.1")
    assert {answer.headers["x-request-id"] for answer in refused} == {denied["request_id"]}
    shown = json.dumps([str(vars(record)) for record in caplog.records])
    assert key[11:] not in shown
    assert wrong[11:] not in shown
