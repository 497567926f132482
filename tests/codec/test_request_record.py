"""What listeners hear of a request at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest

from services.codec.exchange import exchanging
from services.codec.listeners import Listeners
from services.codec.request_figures import Door
from services.codec.request_record import Outcome, RequestRecord
from services.shared.access.caller import Caller
from services.shared.errors import InvalidRequest, Unavailable
from services.shared.trace_context import TraceContext
from tests.codec_bed import MODEL, BedMaker

TRACE = TraceContext.new()
ANSWER = "Hello there."


def heard_of(error: BaseException | None, *, is_submitted: bool) -> RequestRecord:
    records: list[RequestRecord] = []
    caller = Caller(tenant="acme", key_id="tw_1")
    try:
        with exchanging(Door.HTTP, "r1", TRACE, caller, Listeners([records.append])) as exchange:
            exchange.account.is_submitted = is_submitted
            if error is not None:
                raise error
    except (InvalidRequest, Unavailable, asyncio.CancelledError):
        pass
    (record,) = records
    return record


@pytest.mark.parametrize(
    ("error", "is_submitted", "outcome"),
    [
        (None, True, Outcome.FINISHED),
        (asyncio.CancelledError(), True, Outcome.CANCELLED),
        (asyncio.CancelledError(), False, Outcome.CANCELLED),
        (Unavailable("gone"), True, Outcome.FAILED),
        (InvalidRequest("n must be <= 8, got 9", field="n"), False, Outcome.REFUSED),
    ],
)
def test_each_request_has_one_outcome(
    error: BaseException | None, is_submitted: bool, outcome: Outcome
) -> None:
    record = heard_of(error, is_submitted=is_submitted)
    assert (record.outcome, record.tenant, record.key_id) == (outcome, "acme", "tw_1")
    assert record.trace_id == TRACE.trace_id
    assert (record.error is None) == (outcome is Outcome.FINISHED)


@asynccontextmanager
async def hearing(beds: BedMaker) -> AsyncIterator[tuple[openai.AsyncOpenAI, list[RequestRecord]]]:
    records: list[RequestRecord] = []
    async with beds.bed(beds.engine(beds.says(ANSWER))) as bed:
        bed.service.listeners.append(records.append)
        yield bed.openai, records


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_accounted_for(beds: BedMaker, stream: bool) -> None:
    async with hearing(beds) as (client, records):
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
        await client.post("/chat/completions", body=asked, cast_to=object)
        (record,) = records
    account = record.account
    assert record.outcome is Outcome.FINISHED
    assert (account.operation, account.model, account.stream) == ("chat_completions", MODEL, stream)
    assert account.prompt_tokens > 0
    assert account.completion_tokens == len(beds.encoder.encode_text(ANSWER))
    assert len(account.timelines) == 1
    assert account.encoded_s is not None
    assert account.first_s is not None
    assert account.encoded_s <= account.first_s <= record.duration_s
