"""Each request of a codec leaves a row, and the rows of a tenant sum up to what was settled."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.codec.request_record import Account, Outcome, RequestRecord
from services.codec.request_rows import row_of
from services.codec.service import Service
from services.launcher.keys_command import create_key
from services.shared.access import opening
from services.shared.access.quotas import Quotas
from services.shared.access.settings import SecuritySettings
from services.shared.channel import open_channel
from services.shared.errors import Code, Unavailable
from services.shared.request_log import database, request_log
from services.shared.request_log.drop import Drop
from services.shared.request_log.reader import Grouping, RequestReader
from services.shared.request_log.row import GenerationRow
from services.shared.request_log.settings import RequestLogSettings
from services.shared.stream.events import CachedTokens, CacheMiss, Failed, Timeline
from services.shared.stream.generation import Generation
from tests.codec_bed import MODEL, BedMaker
from tests.scripted_engine import ScriptedEngine, Step, serving_engine
from tests.waiting import PATIENCE_S, until

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
TEXT = "one two three"
BODY: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
ENDS, FAILS, HANGS, REFUSED = 50, 51, 52, 53
"""What becomes of a generation, told by its `max_tokens`."""


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A codec with a request log, and clients of two tenants."""

    service: Service
    engine: ScriptedEngine
    settings: RequestLogSettings
    quotas: Quotas
    acme: httpx.AsyncClient
    other: httpx.AsyncClient


class Logging:
    """Makes codecs with a request log in one folder."""

    def __init__(self, beds: BedMaker, folder: Path, made: list[Quotas]) -> None:
        self._beds = beds
        self._folder = folder
        self._made = made
        self.file = folder / "requests.db"
        self.settings = RequestLogSettings(url=f"sqlite:///{self.file}")

    @asynccontextmanager
    async def codec(self) -> AsyncIterator[Logged]:
        keys, tenants = self._folder / "keys.json", self._folder / "tenants.yaml"
        shown = [create_key(keys, name, "").text for name in ("acme", "other")]
        tenants.write_text('tenants: [{tenant: acme, requests_per_minute: 1000}, "*"]')
        security = SecuritySettings(keys_file=keys, tenants_file=tenants)
        engine = self._beds.engine(self._script)
        engine.cached_tokens = 3
        async with serving_engine(engine) as endpoint:
            settings = self._beds.settings(endpoint, security=security)
            settings = replace(settings, request_log=self.settings)
            async with self._beds.codec(settings, lambda door: door) as service:
                await until(lambda: service.ready.fault is None)
                url = f"http://{service.http}"
                async with (
                    httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as acme,
                    httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as other,
                ):
                    acme.headers["x-api-key"], other.headers["x-api-key"] = shown
                    yield Logged(
                        service=service,
                        engine=engine,
                        settings=self.settings,
                        quotas=self._made[-1],
                        acme=acme,
                        other=other,
                    )

    def _script(self, generation: Generation) -> Sequence[Step]:
        ids = self._beds.encoder.encode_text(TEXT)
        match generation.stopping.max_tokens:
            case 51:
                return [ids[:2], Failed(code=Code.UNAVAILABLE, message="gone")]
            case 52:
                return [ids, asyncio.Event()]
            case 53:
                raise Unavailable("no room")
            case _:
                return [ids]


@pytest.fixture
def logging(beds: BedMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logging:
    made: list[Quotas] = []

    def noted(*arguments: Any) -> Quotas:
        made.append(Quotas(*arguments))
        return made[-1]

    monkeypatch.setattr(opening, "Quotas", noted)
    monkeypatch.setattr(request_log, "GATHER_S", 0.01)
    return Logging(beds, tmp_path, made)


@asynccontextmanager
async def reading(settings: RequestLogSettings) -> AsyncIterator[RequestReader]:
    with closing(RequestReader(database.open_for_reading(settings))) as reader:
        yield reader


async def left(codec: Logged, client: httpx.AsyncClient, tenant: str) -> None:
    """A stream that its client leaves after some words."""
    body = BODY | {"max_tokens": HANGS, "stream": True}
    async with client.stream("POST", CHAT, json=body) as response:
        async for line in response.aiter_lines():
            if "three" in line:
                break
    await until(lambda: not codec.quotas.of(tenant).running)


async def by_grpc(codec: Logged, key: str) -> None:
    async with open_channel(codec.service.grpc) as channel:
        stub: Any = rpc.CodecServiceStub(channel)
        body = HttpBody(data=json.dumps(BODY | {"max_tokens": ENDS, "stream": True}).encode())
        async for _ in stub.ChatCompletions(body, metadata=(("x-api-key", key),)):
            pass
        bad = HttpBody(data=b"{")
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Messages(bad, metadata=(("x-api-key", key),)).read()


async def test_rows_of_a_tenant_sum_up_to_what_was_settled(logging: Logging) -> None:
    async with logging.codec() as codec:
        for client, tenant in ((codec.acme, "acme"), (codec.other, "other")):
            for path in (CHAT, MESSAGES):
                for fate in (ENDS, FAILS, REFUSED, 2):
                    await client.post(path, json=BODY | {"max_tokens": fate})
            await client.post(CHAT, json=BODY | {"n": 3, "max_tokens": ENDS})
            await client.post(CHAT, json=BODY | {"stream": True, "max_tokens": FAILS})
            await client.post(CHAT, json=BODY | {"n": 1000})
            await client.post(CHAT, content=b"{")
            await left(codec, client, tenant)
        await codec.acme.post(CHAT, json=BODY | {"stop": ["two"]})
        await by_grpc(codec, codec.acme.headers["x-api-key"])
        totals = {name: codec.quotas.of(name).totals for name in ("acme", "other")}
    async with reading(codec.settings) as reader:
        sums = reader.usage(Grouping.TENANT)
    for tenant, total in totals.items():
        own = [one for one in sums if one.group == tenant]
        used = sum(one.prompt_tokens + one.completion_tokens for one in own)
        assert used == total.settled > 0
        assert total.reserved == total.settled + total.refunded
        assert {one.outcome for one in own} == {"finished", "cancelled", "failed", "refused"}
        assert sum(one.requests for one in own) == (16 if tenant == "acme" else 13)
    assert totals["acme"].settled > totals["other"].settled
    assert codec.service.request_log is not None
    assert codec.service.request_log.written == sum(one.requests for one in sums)
    assert not any(codec.service.request_log.dropped.values())


async def test_the_request_id_that_a_caller_got_finds_its_row(logging: Logging) -> None:
    async with logging.codec() as codec:
        headers = {"x-request-id": "mine"}
        first = await codec.acme.post(CHAT, json=BODY | {"max_tokens": ENDS}, headers=headers)
        await codec.other.post(MESSAGES, json=BODY | {"max_tokens": FAILS}, headers=headers)
    async with reading(codec.settings) as reader:
        second, row = reader.find("mine")
    assert (second.tenant, second.outcome, second.error) == ("other", "failed", "Unavailable")
    assert second.generations == ()
    assert (row.tenant, row.outcome, row.error) == ("acme", "finished", None)
    assert row.trace_id == first.headers["x-trace-id"]
    assert (row.door, row.path, row.operation) == ("http", CHAT, "chat_completions")
    usage = first.json()["usage"]
    assert row.prompt_tokens == usage["prompt_tokens"]
    assert row.cached_device_tokens == 3
    assert row.completion_tokens == usage["completion_tokens"]
    assert [one.choice for one in row.generations] == [0]
    assert row.encoded_us is not None
    assert row.first_us is not None
    assert 0 < row.encoded_us <= row.first_us <= row.duration_us
    assert row.key_id is not None
    assert codec.acme.headers["x-api-key"].startswith(row.key_id)


async def test_nothing_of_prompts_answers_and_keys_is_in_the_file(logging: Logging) -> None:
    async with logging.codec() as codec:
        secret = {"messages": [{"role": "user", "content": "my secret question"}]}
        await codec.acme.post(CHAT, json=BODY | secret | {"max_tokens": ENDS})
        await codec.acme.post(CHAT, json=BODY | secret | {"model": "my secret model"})
        await codec.acme.post(f"/v1/my%1b%5b31m%0a{'x' * 500}", json=secret)
    assert codec.service.request_log is not None
    assert codec.service.request_log.written == 3
    data = logging.file.read_bytes()
    for text in ("secret", "one two", codec.acme.headers["x-api-key"]):
        assert text.encode() not in data
    assert rb"/v1/my\x1b[31m\nxxx" in data


def test_a_row_has_all_that_a_record_tells() -> None:
    timeline = Timeline(
        queued_us=5,
        admission_us=3,
        fetch_us=7,
        prefill_us=11,
        decode_us=13,
        preemptions=1,
        continuations=2,
        cache_miss=CacheMiss.EVICTED,
    )
    account = Account(
        choices=2,
        cached=CachedTokens(device=1, host=2, peer=3, service=4),
        filter_rules=["names", "numbers"],
        timelines={1: timeline},
    )
    record = RequestRecord(
        request_id="r1",
        trace_id="ab",
        door="grpc",
        path="messages",
        tenant=None,
        key_id=None,
        began_at=1.5,
        duration_s=0.25,
        outcome=Outcome.FINISHED,
        error=None,
        account=account,
    )
    row = row_of(record)
    assert (row.began_us, row.duration_us, row.encoded_us) == (1_500_000, 250_000, None)
    cached = (row.cached_device_tokens, row.cached_host_tokens, row.cached_peer_tokens)
    assert (*cached, row.cached_service_tokens) == (1, 2, 3, 4)
    assert row.filter_rules == "names,numbers"
    (generation,) = row.generations
    assert generation == GenerationRow(
        choice=1,
        fetch_us=7,
        queued_us=5,
        admission_us=3,
        prefill_us=11,
        decode_us=13,
        preemptions=1,
        continuations=2,
        cache_miss="evicted",
    )
    assert row.entry_id[:16] == f"{1_500_000:016x}"
    assert row_of(record).entry_id != row.entry_id


def corrupt(file: Path) -> None:
    file.write_bytes(b"no database" * 1000)


def take_away(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize(
    ("spoil", "cause"), [(corrupt, Drop.CORRUPT), (take_away, Drop.UNAVAILABLE)]
)
async def test_requests_are_answered_whatever_the_database_does(
    logging: Logging, spoil: Any, cause: Drop
) -> None:
    spoil(logging.file)
    async with logging.codec() as codec:
        answer = await codec.acme.post(CHAT, json=BODY | {"max_tokens": ENDS})
    assert answer.status_code == 200
    assert codec.service.request_log is not None
    assert codec.service.request_log.dropped[cause] == 1


async def test_requests_are_answered_while_another_holds_the_database(
    logging: Logging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 0.02)
    async with logging.codec() as codec:
        log = codec.service.request_log
        assert log is not None
        await until(lambda: logging.file.exists() and log._rows is not None)
        with closing(sqlite3.connect(logging.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answers = [
                await codec.acme.post(CHAT, json=BODY | {"max_tokens": ENDS}) for _ in range(3)
            ]
            await until(lambda: log._trouble is Drop.LOCKED)
            assert log.queued == 3
        await until(lambda: log.written == 3)
    assert {answer.status_code for answer in answers} == {200}
    assert not any(log.dropped.values())
