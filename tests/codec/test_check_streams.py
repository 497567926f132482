"""Conformance of streamed Chat Completions as the official SDK sees it; numbers are the list's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from services.shared.stream.generation import Generation
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.scripted_engine import Step

TEXT = "Hello 日本語 🦀!"
HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
CALL = '<tool_call>[{"name": "f", "arguments": {"a": "ü</tool_call>"}}]</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed:
        yield bed


async def chunks_of(bed: Bed, **options: Any) -> list[Any]:
    create: Any = bed.openai.chat.completions.create
    stream = await create(model=MODEL, messages=HI, stream=True, **options)
    return [chunk async for chunk in stream]


async def test_usage_of_every_chunk_grows_where_it_is_wanted(bed: Bed) -> None:
    """1.1: continuous_usage_stats."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = await chunks_of(bed, stream_options=options)
    counts = [chunk.usage.completion_tokens for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1]
    assert chunks[-1].choices == []


async def test_helper_has_each_name_once_and_tells_finished_arguments(beds: BedMaker) -> None:
    """Check 52."""
    async with beds.bed(beds.engine(beds.says(CALL))) as bed:
        helper: Any = bed.openai.chat.completions.stream
        async with helper(model=MODEL, messages=HI, tools=TOOLS) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_completion()
    message = final.choices[0].message
    (call,) = message.tool_calls
    assert (message.role, call.function.name, call.type) == ("assistant", "f", "function")
    assert json.loads(call.function.arguments) == {"a": "ü</tool_call>"}
    assert call.id.count("call_") == 1
    assert "tool_calls.function.arguments.done" in kinds


async def test_helper_keeps_two_choices_apart(bed: Bed) -> None:
    """Check 53."""
    helper: Any = bed.openai.chat.completions.stream
    async with helper(model=MODEL, messages=HI, n=2) as stream:
        final = await stream.get_final_completion()
    assert [choice.message.content for choice in final.choices] == [TEXT, TEXT]
    assert [choice.message.role for choice in final.choices] == ["assistant"] * 2


async def test_streamed_logprobs_are_those_of_the_whole(bed: Bed) -> None:
    """Check 54."""
    create: Any = bed.openai.chat.completions.create
    whole = await create(model=MODEL, messages=HI, logprobs=True, top_logprobs=2)
    chunks = await chunks_of(bed, logprobs=True, top_logprobs=2)
    told = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    assert [entry for logprobs in told for entry in logprobs.content] == (
        whole.choices[0].logprobs.content
    )


async def test_no_delta_has_part_of_a_character(bed: Bed) -> None:
    """Check 55: the engine sends token by token."""
    deltas = [chunk.choices[0].delta.content or "" for chunk in await chunks_of(bed)]
    assert "".join(deltas) == TEXT
    assert not any("\ufffd" in delta for delta in deltas)


def split(text: str, cuts: int) -> list[str]:
    """The text cut after each character whose bit is set."""
    ends = [at for at in range(1, len(text)) if cuts >> (at - 1) & 1]
    return [text[start:end] for start, end in pairwise([0, *ends, len(text)])]


async def test_no_piece_of_a_marker_is_content_however_it_is_split(beds: BedMaker) -> None:
    """Check 56: 32 of the ways to cut the marker's text into tokens, from one to all."""
    marker = "<tool_call>"
    ways = iter(range(0, 2**10, 33))

    def script(_: Generation) -> list[Step]:
        parts = ["x ", *split(marker, next(ways)), CALL.removeprefix(marker)]
        return [[token] for part in parts for token in beds.encoder.encode_text(part)]

    async with beds.bed(beds.engine(script)) as bed:
        for _ in range(32):
            chunks = await chunks_of(bed, tools=TOOLS)
            content = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            assert (content, chunks[-1].choices[0].finish_reason) == ("x", "tool_calls")


async def test_beginning_of_a_marker_at_the_end_is_text(beds: BedMaker) -> None:
    """Check 57."""
    said = "a < b <tool"
    async with beds.bed(beds.engine(beds.says(said))) as bed:
        chunks = await chunks_of(bed, tools=TOOLS)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == said


async def test_reasoning_comes_first_and_under_both_names(thinkers: BedMaker) -> None:
    """Check 58."""
    async with thinkers.bed(thinkers.engine(thinkers.says("<think>hm hm</think>\n\nyes"))) as bed:
        chunks = await chunks_of(bed, stream_options={"include_usage": True})
    deltas = [chunk.choices[0].delta.model_dump() for chunk in chunks[:-1]]
    reasoning = [delta["reasoning"] for delta in deltas if delta.get("reasoning")]
    assert reasoning == [d["reasoning_content"] for d in deltas if d.get("reasoning_content")]
    assert "".join(reasoning) == "hm hm"
    assert "".join(delta["content"] or "" for delta in deltas) == "yes"
    first_text = next(at for at, delta in enumerate(deltas) if delta["content"])
    assert not any(delta.get("reasoning") for delta in deltas[first_text:])
    details = chunks[-1].usage.completion_tokens_details
    assert 0 < details.reasoning_tokens < chunks[-1].usage.completion_tokens


async def test_hidden_reasoning_is_counted_and_not_told(thinkers: BedMaker) -> None:
    """1.1: include_reasoning."""
    async with thinkers.bed(thinkers.engine(thinkers.says("<think>hm hm</think>yes"))) as bed:
        create: Any = bed.openai.chat.completions.create
        answer = await create(model=MODEL, messages=HI, extra_body={"include_reasoning": False})
    assert "reasoning" not in answer.choices[0].message.model_dump()
    assert answer.usage.completion_tokens_details.reasoning_tokens > 0
