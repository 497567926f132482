"""Messages as the official SDK sees it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anthropic
import httpx
import pytest

from services.shared.errors import Code, Overloaded
from services.shared.stream.events import CancelReason, Failed, FinishReason
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.scripted_engine import refusing
from tests.waiting import until

TEXT = "Hello there ### friend. 日本語"
HI: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    engine = beds.engine(beds.says(TEXT))
    engine.cached_tokens = 3
    async with beds.bed(engine) as bed:
        yield bed


async def ask(bed: Bed, messages: Any = HI, **options: Any) -> Any:
    return await bed.anthropic.messages.create(
        **{"model": MODEL, "messages": messages, "max_tokens": 100, **options}
    )


async def prompt_of(bed: Bed, messages: Any = HI, **options: Any) -> list[int]:
    await ask(bed, messages, **options)
    return list(bed.engine.generations[-1].prompt_ids)


async def test_whole_answer_has_text_reason_and_usage(bed: Bed) -> None:
    """Check 67."""
    answer = await ask(bed)
    assert (answer.type, answer.role, answer.stop_reason) == ("message", "assistant", "end_turn")
    assert [(block.type, block.text) for block in answer.content] == [("text", TEXT)]
    prompt = len(bed.engine.generations[0].prompt_ids)
    assert answer.usage.cache_read_input_tokens == 3
    assert answer.usage.input_tokens == prompt - 3
    assert answer._request_id.startswith("req_")


async def test_a_system_prompt_is_pinned_and_what_is_said_is_not(bed: Bed) -> None:
    system = "You are a clerk of few words. " * 10
    marked = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    await ask(bed)
    await ask(bed, system=system)
    await ask(bed, system=marked)
    await ask(bed, [{"role": "user", "content": "another question"}], system=system)
    none, *pinned = bed.engine.generations
    assert none.cache.pinned_tokens == 0
    (tokens,) = {generation.cache.pinned_tokens for generation in pinned}
    assert 50 < tokens < len(pinned[0].prompt_ids)
    assert len({tuple(generation.prompt_ids[:tokens]) for generation in pinned}) == 1


async def test_stop_sequence_is_named_and_cut(bed: Bed) -> None:
    """Check 73."""
    answer = await ask(bed, stop_sequences=["nope", "###"])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "###")
    assert answer.content[0].text == "Hello there "


async def test_max_tokens_stops_and_zero_only_reads_the_prompt(bed: Bed) -> None:
    """Checks 72 and 74."""
    two = await ask(bed, max_tokens=2)
    none = await ask(bed, max_tokens=0)
    assert (two.stop_reason, two.usage.output_tokens) == ("max_tokens", 2)
    assert (none.stop_reason, none.usage.output_tokens, none.content) == ("max_tokens", 0, [])


async def test_full_context_is_told_as_such(beds: BedMaker) -> None:
    ids = beds.encoder.encode_text("hello")
    async with beds.bed(beds.engine(lambda _: [ids, FinishReason.MAX_TOKENS])) as bed:
        answer = await ask(bed, max_tokens=1_000_000, timeout=60)
    assert answer.stop_reason == "model_context_window_exceeded"


async def test_empty_answer_has_no_block(beds: BedMaker) -> None:
    async with beds.bed(beds.engine(lambda _: [])) as bed:
        assert (await ask(bed)).content == []
        async with bed.anthropic.messages.stream(model=MODEL, messages=HI, max_tokens=9) as stream:
            assert [event.type async for event in stream] == [
                "message_start",
                "message_delta",
                "message_stop",
            ]


async def test_stream_has_events_in_order_and_usage_from_the_start(bed: Bed) -> None:
    """Check 87."""
    async with bed.anthropic.messages.stream(model=MODEL, messages=HI, max_tokens=99) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_message()
    order = " ".join(event.type for event in events if event.type != "text")
    assert re.fullmatch(
        r"message_start content_block_start (content_block_delta )+content_block_stop "
        r"message_delta message_stop",
        order,
    )
    start: Any = events[0]
    assert start.message.usage.input_tokens == final.usage.input_tokens > 0
    assert start.message.usage.cache_read_input_tokens == 3
    whole = await ask(bed)
    assert final.content[0].text == TEXT  # type: ignore[union-attr]  # the only block is text
    assert final.usage == whole.usage


async def test_raw_frames_all_name_their_event(bed: Bed) -> None:
    """Check 87."""
    body = {"model": MODEL, "messages": HI, "max_tokens": 9, "stream": True}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post("/v1/messages?beta=true", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    frames = answer.text.split("\n\n")
    assert frames.pop() == ""
    for frame in frames:
        assert re.fullmatch(r'event: (\w+)\ndata: \{"type":"\1".*\}', frame)


async def test_silence_is_filled_with_pings(beds: BedMaker) -> None:
    """Check 89."""
    more = asyncio.Event()
    ids = beds.encoder.encode_text("hello")
    engine = beds.engine(lambda _: [ids, more, ids])
    async with beds.bed(engine, lambda s: replace(s, heartbeat_seconds=0.05)) as bed:
        stream = await ask(bed, stream=True)
        body = stream.response.aiter_lines()
        async for line in body:
            if line == "event: ping":
                more.set()
            if line == "event: message_stop":
                break
        assert more.is_set()


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", None])
async def test_any_version_is_taken(bed: Bed, version: str | None) -> None:
    """Check 69."""
    headers = {"anthropic-version": version} if version else {}
    async with httpx.AsyncClient(base_url=bed.url, headers=headers) as client:
        body = {"model": MODEL, "messages": HI, "max_tokens": 9}
        assert (await client.post("/v1/messages", json=body)).status_code == 200
        assert (await client.head("/")).status_code == 200


async def test_system_text_is_the_same_prompt_in_every_form(bed: Bed) -> None:
    """Check 70."""
    block = {"type": "text", "text": "be brief"}
    billing = {"type": "text", "text": "x-anthropic-billing-header: cch=123;"}
    prompts = [
        await prompt_of(bed, system=system)
        for system in (
            "be brief",
            [block],
            [block | {"cache_control": {"type": "ephemeral"}}],
            [billing, block],
        )
    ]
    assert all(prompt == prompts[0] for prompt in prompts)


async def test_sampling_fields_are_honoured(bed: Bed) -> None:
    """Check 71."""
    await ask(bed, extra_body={"temperature": 0.5, "top_p": 0.25, "top_k": 3})
    sampling = bed.engine.generations[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.5, 0.25, 3)


async def test_turns_of_one_side_are_merged(bed: Bed) -> None:
    """Check 78."""
    two = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    one = [{"role": "user", "content": [{"type": "text", "text": text} for text in "ab"]}]
    assert await prompt_of(bed, two) == await prompt_of(bed, one)


async def test_last_assistant_turn_is_continued(bed: Bed, beds: BedMaker) -> None:
    """Check 79."""
    prompt = await prompt_of(bed, [*HI, {"role": "assistant", "content": "The sum is \n"}])
    tail = beds.encoder.encode_text("The sum is")
    assert prompt[-len(tail) :] == tail


async def test_system_turn_amid_messages_leaves_the_earlier_prompt_alone(bed: Bed) -> None:
    """Check 80."""
    before = [*HI, {"role": "assistant", "content": "ho"}]
    plain = await prompt_of(bed, [*before, {"role": "user", "content": "go"}], system="s")
    inline = await prompt_of(
        bed,
        [*before, {"role": "system", "content": "now"}, {"role": "user", "content": "go"}],
        system="s",
    )
    shared = next(i for i, (a, b) in enumerate(zip(plain, inline, strict=False)) if a != b)
    head = await prompt_of(bed, [*HI, {"role": "user", "content": "x"}], system="s")
    assert shared > len(head) - 6


async def test_tool_history_is_read_in_the_order_of_the_calls(bed: Bed) -> None:
    """Check 77."""
    calls = [{"type": "tool_use", "id": f"toolu_{n}", "name": "f", "input": {}} for n in "12"]
    results = [
        {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"result {n}"} for n in "12"
    ]
    text = {"type": "text", "text": "go on"}
    history = [*HI, {"role": "assistant", "content": calls}]
    in_order = await prompt_of(bed, [*history, {"role": "user", "content": [*results, text]}])
    mixed = [results[1], text, results[0]]
    assert await prompt_of(bed, [*history, {"role": "user", "content": mixed}]) == in_order


async def test_same_conversation_is_the_same_prompt_in_both_protocols(bed: Bed) -> None:
    by_messages = await prompt_of(bed, system="be brief")
    chat: Any = [{"role": "system", "content": "be brief"}, *HI]
    await bed.openai.chat.completions.create(model=MODEL, messages=chat)
    assert list(bed.engine.generations[-1].prompt_ids) == by_messages


async def test_count_is_what_usage_says(bed: Bed) -> None:
    """Check 85."""
    system: Any = [{"type": "text", "text": "be brief"}]
    counted = await bed.anthropic.messages.count_tokens(model=MODEL, messages=HI, system=system)
    usage = (await ask(bed, system=system)).usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"messages": []}, "messages must have 1"),
        ({"max_tokens": -1}, "max_tokens must be 0"),
        ({"messages": [{"role": "tool", "content": "x"}]}, r"messages\[0\].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            r"messages\[0\].content\[0\].type",
        ),
        ({"tools": [{"name": "f", "type": "bash_20250124"}]}, r"tools\[0\].type"),
        ({"tool_choice": {"type": "any"}}, "tool_choice needs tools"),
        ({"stop_sequences": "x"}, "stop_sequences must be an array"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.budget_tokens"),
    ],
)
async def test_bad_values_are_refused_by_name(bed: Bed, options: dict[str, Any], text: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=text) as caught:
        await ask(bed, **options)
    body: Any = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert body["request_id"] == caught.value.request_id


async def test_missing_max_tokens_is_named(bed: Bed) -> None:
    """Check 72."""
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post("/v1/messages", json={"model": MODEL, "messages": HI})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "max_tokens must be set"


async def test_server_tools_and_betas_are_let_be(bed: Bed) -> None:
    """Check 84."""
    tools: Any = [{"type": "web_search_20250305", "name": "web_search"}]
    answer = await ask(
        bed,
        tools=tools,
        extra_headers={"anthropic-beta": "no-such-beta"},
        extra_body={"context_management": {"edits": []}, "foo": 1},
    )
    assert answer.content[0].text == TEXT


async def test_overlong_prompt_says_what_agents_look_for(bed: Bed) -> None:
    """Check 91."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(bed, [{"role": "user", "content": "word " * 5000}])
    body: Any = caught.value.body
    assert re.fullmatch(r"prompt is too long: \d+ tokens > 4096 maximum", body["error"]["message"])


async def test_unknown_paths_are_in_the_protocols_envelope(bed: Bed) -> None:
    """Check 93."""
    with pytest.raises(anthropic.NotFoundError) as caught:
        await bed.anthropic.messages.batches.list()
    assert caught.value.type == "not_found_error"
    with pytest.raises(anthropic.NotFoundError):
        await ask(bed, model="claude-9")


async def test_failure_in_a_stream_is_an_error_event(beds: BedMaker) -> None:
    """Check 90."""
    failed = Failed(code=Code.INTERNAL, message="KeyError in /engine.py")
    ids = beds.encoder.encode_text("one two")
    engine = beds.engine(lambda _: [ids, failed])
    async with beds.bed(engine) as bed:
        with pytest.raises(anthropic.APIStatusError) as caught:
            async for _ in await ask(bed, stream=True):
                pass
    assert caught.value.type == "api_error"
    assert "KeyError" not in str(caught.value.body)


async def test_full_engine_is_overloaded(beds: BedMaker) -> None:
    """Check 90."""
    async with beds.bed(beds.engine(refusing(Overloaded("full")))) as bed:
        with pytest.raises(anthropic.OverloadedError) as caught:
            await ask(bed)
    assert (caught.value.status_code, caught.value.type) == (529, "overloaded_error")


async def test_concurrency_has_a_limit(beds: BedMaker) -> None:
    never = asyncio.Event()
    engine = beds.engine(lambda _: [never])
    change = lambda s: replace(s, limits=replace(s.limits, max_concurrency=1))  # noqa: E731
    async with beds.bed(engine, change) as bed:
        first = asyncio.ensure_future(ask(bed))
        await until(lambda: engine.submissions)
        with pytest.raises(anthropic.OverloadedError):
            await ask(bed)
        first.cancel()
        await until(lambda: engine.cancels)


async def test_time_limit_ends_a_request(beds: BedMaker) -> None:
    never = asyncio.Event()
    engine = beds.engine(lambda _: [never])
    change = lambda s: replace(s, limits=replace(s.limits, request_timeout_ms=50))  # noqa: E731
    async with beds.bed(engine, change) as bed:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await ask(bed)
        assert (caught.value.status_code, caught.value.type) == (504, "timeout_error")
        await until(lambda: engine.cancels == [CancelReason.DEADLINE])
