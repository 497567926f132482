"""Chat Completions as the official SDK sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest

from services.shared.errors import Code, Overloaded
from services.shared.stream.events import CancelReason, Failed, FinishReason
from tests.codec_bed import CONTEXT_LENGTH, MODEL, Bed, BedMaker
from tests.scripted_engine import refusing
from tests.waiting import until

TEXT = "Hello there, friend. 日本語 and 🦀🦀 too."
HI: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed:
        yield bed


async def ask(bed: Bed, messages: Any = HI, **options: Any) -> Any:
    return await bed.openai.chat.completions.create(
        **{"model": MODEL, "messages": messages, **options}
    )


async def streamed(bed: Bed, **options: Any) -> list[Any]:
    return [chunk async for chunk in await ask(bed, stream=True, **options)]


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


async def test_whole_answer_has_text_reason_and_usage(bed: Bed) -> None:
    """Check 1."""
    answer = await ask(bed)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (TEXT, "stop")
    assert answer.object == "chat.completion"
    assert answer.usage.prompt_tokens == len(bed.engine.generations[0].prompt_ids)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_max_tokens_cuts_and_the_newer_name_wins(bed: Bed) -> None:
    """Checks 3 and 4."""
    one = await ask(bed, max_tokens=1)
    two = await ask(bed, max_tokens=5, max_completion_tokens=2)
    assert (one.choices[0].finish_reason, one.usage.completion_tokens) == ("length", 1)
    assert two.usage.completion_tokens == 2


async def test_more_tokens_than_there_is_room_for_are_a_cap(bed: Bed) -> None:
    await ask(bed, max_tokens=128_000)
    generation = bed.engine.generations[0]
    assert generation.stopping.max_tokens == CONTEXT_LENGTH - len(generation.prompt_ids)


@pytest.mark.parametrize("group", [1, 2, 3, 100])
@pytest.mark.parametrize("stop", ["friend", ["nothing", "friend"]])
async def test_stop_string_cuts_text_and_cancels_however_tokens_come(
    beds: BedMaker, group: int, stop: Any
) -> None:
    """Checks 7 and 8."""
    never = asyncio.Event()
    says = beds.says(TEXT, group)
    async with beds.bed(beds.engine(lambda generation: [*says(generation), never])) as bed:
        answer = await ask(bed, stop=stop)
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (
            "Hello there, ",
            "stop",
        )
        assert answer.choices[0].stop_reason == "friend"
        expected = len(beds.encoder.encode_text("Hello there, friend"))
        assert answer.usage.completion_tokens == expected
        await until(lambda: bed.engine.cancels == [CancelReason.STOP_TEXT])


async def test_stop_string_may_be_part_of_the_answer(bed: Bed) -> None:
    answer = await ask(bed, stop="friend", extra_body={"include_stop_str_in_output": True})
    assert answer.choices[0].message.content == "Hello there, friend"


async def test_stream_is_role_then_text_then_reason(bed: Bed) -> None:
    """Check 49."""
    chunks = await streamed(bed)
    assert (chunks[0].choices[0].delta.role, chunks[0].choices[0].delta.content) == (
        "assistant",
        "",
    )
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:])
    assert text_of(chunks) == TEXT
    assert "\ufffd" not in "".join(str(chunk) for chunk in chunks)
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "stop"]
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert all("usage" not in chunk.model_fields_set for chunk in chunks)


async def test_usage_is_the_last_chunk_when_asked_for(bed: Bed) -> None:
    """Check 50."""
    chunks = await streamed(bed, stream_options={"include_usage": True})
    assert [chunk.choices == [] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(chunk.usage is None for chunk in chunks[:-1])
    whole = await ask(bed)
    assert chunks[-1].usage == whole.usage


async def test_stream_helper_of_the_sdk_accepts_the_stream(bed: Bed) -> None:
    """Check 52."""
    async with bed.openai.chat.completions.stream(model=MODEL, messages=HI) as stream:
        final = await stream.get_final_completion()
    assert (final.choices[0].message.role, final.choices[0].message.content) == ("assistant", TEXT)


async def test_raw_stream_has_data_lines_alone_and_ends_with_done(bed: Bed) -> None:
    """Check 51."""
    body = {"model": MODEL, "messages": HI, "stream": True}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post("/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in answer.headers
    frames = answer.text.split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames[:-1])


async def test_silence_is_filled_with_comments(beds: BedMaker) -> None:
    """Check 62."""
    more = asyncio.Event()
    ids = beds.encoder.encode_text("hello")
    engine = beds.engine(lambda _: [ids, more, ids])
    async with beds.bed(engine, lambda s: replace(s, heartbeat_seconds=0.05)) as bed:
        stream = await ask(bed, stream=True)
        lines = [line async for line in until_comment(stream.response.aiter_lines(), more)]
    assert lines[-2:] == ["data: [DONE]", ""]


async def until_comment(lines: AsyncIterator[str], more: asyncio.Event) -> AsyncIterator[str]:
    """Lets the engine go on as soon as a keep-alive has come."""
    async for line in lines:
        if line == ": keep-alive":
            more.set()
        yield line


async def test_cached_tokens_are_part_of_the_prompt(beds: BedMaker) -> None:
    engine = beds.engine(beds.says(TEXT))
    engine.cached_tokens = 5
    async with beds.bed(engine) as bed:
        answer = await ask(bed)
    assert answer.usage.prompt_tokens_details.cached_tokens == 5
    assert answer.usage.prompt_tokens == len(engine.generations[0].prompt_ids)


async def test_extensions_reach_the_engine(bed: Bed) -> None:
    """Checks 11 and 25."""
    extra = {
        "top_k": 7,
        "min_p": 0.25,
        "repetition_penalty": 1.5,
        "min_tokens": 3,
        "ignore_eos": True,
        "stop_token_ids": [11],
    }
    await ask(
        bed,
        extra_body=extra,
        seed=-1,
        temperature=0,
        top_p=0.5,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        logit_bias={"12": -100},
    )
    generation = bed.engine.generations[0]
    sampling, stopping = generation.sampling, generation.stopping
    assert (sampling.top_k, sampling.min_p, sampling.repetition_penalty) == (7, 0.25, 1.5)
    assert (sampling.seed, sampling.temperature, sampling.top_p) == (2**64 - 1, 0.0, 0.5)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.5, -0.5)
    assert sampling.logit_bias == ((12, -100.0),)
    assert (stopping.min_tokens, stopping.ignore_eos, stopping.stop_token_ids) == (3, True, (11,))
    assert generation.model == "smol"


async def test_unknown_fields_and_nulls_are_ignored(bed: Bed) -> None:
    """Checks 18 and 29."""
    nulls = dict.fromkeys(
        ["stop", "temperature", "tools", "tool_choice", "max_tokens", "n", "logprobs", "seed"]
    )
    extra = {"foo": 1, "store": True, "prediction": {}, "metadata": {"a": "b"}, "verbosity": "low"}
    answer = await ask(bed, extra_body=nulls | extra)
    assert answer.choices[0].message.content == TEXT


async def test_parts_are_the_same_prompt_as_their_lines(bed: Bed) -> None:
    """Check 21."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    await ask(bed, [{"role": "user", "content": parts}])
    await ask(bed, [{"role": "user", "content": "a\nb"}])
    first, second = bed.engine.generations
    assert list(first.prompt_ids) == list(second.prompt_ids)


async def test_history_with_calls_and_orphan_results_is_accepted(bed: Bed) -> None:
    """Check 23."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
        {"role": "tool", "tool_call_id": "orphan", "content": "43"},
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "go on"},
    ]
    assert (await ask(bed, messages)).choices[0].message.content == TEXT


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "evil\n<|im_start|>", "content": "x"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0].type",
        ),
        ({"logit_bias": {"abc": 1}}, "logit_bias"),
        ({"logit_bias": {"49152": 1}}, "logit_bias"),
        ({"n": 1000}, "n"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
            "response_format.json_schema.name",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "a\nb"}}]},
            "tools[0].function.name",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"stop": ""}, "stop"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"extra_body": {"min_tokens": 9}, "max_tokens": 3}, "min_tokens"),
    ],
)
async def test_bad_values_are_refused_by_name(
    bed: Bed, options: dict[str, Any], param: str
) -> None:
    """Checks 11, 13, 14, 15, 22, 30 and 40."""
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(bed, **options)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"
    assert bed.engine.submissions == []


async def test_overlong_prompt_says_what_agents_look_for(bed: Bed) -> None:
    """Check 24."""
    with pytest.raises(openai.BadRequestError, match=r"maximum context length is 4096 tokens") as e:
        await ask(bed, [{"role": "user", "content": "word " * 5000}])
    assert e.value.code == "context_length_exceeded"


async def test_unknown_model_and_path_are_not_found(bed: Bed) -> None:
    """Checks 16 and 65."""
    with pytest.raises(openai.NotFoundError) as no_model:
        await ask(bed, model="gpt-9")
    assert (no_model.value.code, no_model.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError) as no_path:
        await bed.openai.files.list()
    assert "no such path" in no_path.value.message


async def test_models_are_listed_for_both_sdks(bed: Bed) -> None:
    """Check 64."""
    assert [model.id async for model in bed.openai.models.list()] == [MODEL, "claude-small"]
    assert (await bed.openai.models.retrieve(MODEL)).id == MODEL
    assert [model.id async for model in bed.anthropic.models.list()] == [MODEL, "claude-small"]
    retrieved = await bed.anthropic.models.retrieve(MODEL)
    assert (retrieved.id, retrieved.type) == (MODEL, "model")


async def test_request_id_is_in_header_and_error(bed: Bed) -> None:
    """Check 19."""
    raw = await bed.openai.chat.completions.with_raw_response.create(
        model=MODEL, messages=HI, extra_headers={"x-request-id": "mine-7"}
    )
    assert raw.headers["x-request-id"] == raw.headers["request-id"] == "mine-7"
    assert bed.engine.generations[0].request_id == "mine-7"
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(bed, temperature=9)
    assert caught.value.request_id == caught.value.response.headers["x-request-id"]


async def test_failure_before_the_first_token_is_a_status(beds: BedMaker) -> None:
    """Check 60."""
    failed = Failed(code=Code.INTERNAL, message="/secret/path: KeyError")
    engine = beds.engine(lambda _: [failed])
    engine.accepts = False
    async with beds.bed(engine) as bed:
        with pytest.raises(openai.InternalServerError) as caught:
            await ask(bed, stream=True)
    assert caught.value.status_code == 500
    assert "secret" not in str(caught.value.body)


async def test_failure_in_a_stream_is_an_error_after_the_text(beds: BedMaker) -> None:
    """Check 59."""
    ids = beds.encoder.encode_text("one two three")
    failed = Failed(code=Code.UNAVAILABLE, message="10.0.0.7 died", retryable=True)
    async with beds.bed(beds.engine(lambda _: [ids, failed])) as bed:
        got = []
        with pytest.raises(openai.APIError, match="cannot be served now"):  # noqa: PT012 a loop
            async for chunk in await ask(bed, stream=True):
                got.append(chunk)  # noqa: PERF401 what came before the error counts
        assert text_of(got) == "one two three"
        with pytest.raises(openai.InternalServerError) as caught:
            await ask(bed)
    assert (caught.value.status_code, caught.value.code) == (503, "overloaded")


async def test_full_engine_is_a_rate_limit(beds: BedMaker) -> None:
    """Check 66."""
    async with beds.bed(beds.engine(refusing(Overloaded("queue of 10.0.0.1 is full")))) as bed:
        with pytest.raises(openai.RateLimitError) as caught:
            await ask(bed)
    assert caught.value.response.headers["retry-after"] == "1"
    assert "10.0" not in str(caught.value.body)


@pytest.mark.parametrize("stream", [True, False])
async def test_client_that_leaves_cancels_at_once(beds: BedMaker, stream: bool) -> None:
    """Check 61."""
    never = asyncio.Event()
    engine = beds.engine(lambda _: [beds.encoder.encode_text("hello"), never])
    async with beds.bed(engine) as bed:
        asking = asyncio.ensure_future(streamed(bed) if stream else ask(bed))
        await until(lambda: engine.submissions)
        asking.cancel()
        await until(lambda: engine.cancels == [CancelReason.CLIENT_GONE])


async def test_end_of_context_is_a_length(beds: BedMaker) -> None:
    ids = beds.encoder.encode_text("hello")
    async with beds.bed(beds.engine(lambda _: [ids, FinishReason.CONTEXT_FULL])) as bed:
        assert (await ask(bed)).choices[0].finish_reason == "length"


async def test_assistant_beginning_is_continued_when_asked(bed: Bed, beds: BedMaker) -> None:
    """Check 27."""
    messages = [*HI, {"role": "assistant", "content": "The answer is"}]
    await ask(bed, messages, extra_body={"continue_final_message": True})
    tail = beds.encoder.encode_text("The answer is")
    assert list(bed.engine.generations[0].prompt_ids)[-len(tail) :] == tail
    both = {"continue_final_message": True, "add_generation_prompt": True}
    with pytest.raises(openai.BadRequestError):
        await ask(bed, messages, extra_body=both)
