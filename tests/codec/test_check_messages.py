"""Conformance of Messages as its official SDK sees it; numbers are the list's."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anthropic
import httpx
import pydantic
import pytest

from services.codec.protocols.reading import Images
from tests.codec_bed import MODEL, Bed, BedMaker

TEXT = "Hello 日本語 🦀!"
HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
TOOLS: list[dict[str, Any]] = [
    {"name": "weather", "input_schema": {"properties": {"city": {"type": "string"}}}},
    {"name": "time", "input_schema": {"type": "object"}},
]
CALLS = (
    '<tool_call>[{"name": "weather", "arguments": {"city": "Bonn"}}, {"name": "time"}]</tool_call>'
)
THOUGHT = "<think>hm hm</think>\n\nyes"


class Trip(pydantic.BaseModel):
    city: str


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed:
        yield bed


@pytest.fixture
async def calling(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(CALLS))) as bed:
        yield bed


@pytest.fixture
async def thinking(thinkers: BedMaker) -> AsyncIterator[Bed]:
    async with thinkers.bed(thinkers.engine(thinkers.says(THOUGHT))) as bed:
        yield bed


async def ask(bed: Bed, messages: Any = HI, **options: Any) -> Any:
    create: Any = bed.anthropic.messages.create
    return await create(model=MODEL, messages=messages, **{"max_tokens": 2000, **options})


async def final(bed: Bed, **options: Any) -> Any:
    helper: Any = bed.anthropic.messages.stream
    given = {"model": MODEL, "messages": HI, "max_tokens": 2000, **options}
    async with helper(**given) as stream:
        return await stream.get_final_message()


def prompts(bed: Bed) -> list[list[int]]:
    return [list(generation.prompt_ids) for generation in bed.engine.generations]


@pytest.mark.parametrize("headers", [{"x-api-key": "k"}, {"authorization": "Bearer k"}, {}])
async def test_any_way_to_send_a_key_is_taken(bed: Bed, headers: dict[str, str]) -> None:
    """Check 68: no key is asked for here, so that each form of sending one must pass."""
    body = {"model": MODEL, "max_tokens": 5, "messages": HI}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post("/v1/messages", json=body, headers=headers)
    assert answer.status_code == 200


async def test_call_is_a_block_with_an_object(calling: Bed) -> None:
    """Check 75."""
    answer = await ask(calling, tools=TOOLS)
    assert [block.type for block in answer.content] == ["tool_use", "tool_use"]
    assert [block.input for block in answer.content] == [{"city": "Bonn"}, {}]
    assert answer.stop_reason == "tool_use"
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", block.id) for block in answer.content)


async def test_streamed_calls_are_those_of_the_whole(calling: Bed) -> None:
    """Checks 75 and 87."""
    message = await final(calling, tools=TOOLS)
    assert [block.input for block in message.content] == [{"city": "Bonn"}, {}]
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "time"}])
async def test_demanded_call_is_demanded_of_the_engine(calling: Bed, choice: Any) -> None:
    """Check 76."""
    await ask(calling, tools=TOOLS, tool_choice=choice)
    constraint = calling.engine.generations[0].constraint
    assert constraint is not None
    assert ("weather" in constraint.source) == (choice["type"] == "any")


async def test_no_call_is_wanted_and_markers_are_text(calling: Bed) -> None:
    """Check 76."""
    answer = await ask(calling, tools=TOOLS, tool_choice={"type": "none"})
    assert [block.type for block in answer.content] == ["text"]
    assert answer.content[0].text == CALLS


async def test_only_the_first_call_where_one_is_wanted(calling: Bed) -> None:
    """Check 76."""
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    answer = await ask(calling, tools=TOOLS, tool_choice=choice)
    assert len(answer.content) == 1


@pytest.mark.parametrize("choice", [{"type": "tool"}, {"type": "tool", "name": "nope"}])
async def test_choice_without_its_tool_is_refused(bed: Bed, choice: Any) -> None:
    """Check 76."""
    with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
        await ask(bed, tools=TOOLS, tool_choice=choice)


RESULTS: list[Any] = [
    "rain",
    [{"type": "text", "text": "rain"}],
    [
        {"type": "text", "text": "rain"},
        {"type": "search_result", "source": "s", "title": "T", "content": []},
        {"type": "tool_reference", "tool_name": "x"},
    ],
    None,
    [],
]


@pytest.mark.parametrize("content", RESULTS)
@pytest.mark.parametrize("is_error", [True, False])
async def test_result_in_any_form_stands_after_its_call(
    bed: Bed, beds: BedMaker, content: Any, is_error: bool
) -> None:
    """Check 77."""
    used = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    after = [
        {"type": "text", "text": "before"},
        result | {"is_error": is_error},
        {"type": "text", "text": "after"},
    ]
    history = [*HI, {"role": "assistant", "content": [used]}, {"role": "user", "content": after}]
    await ask(bed, history, tools=TOOLS)
    ids = prompts(bed)[0]
    shown = b"".join(map(beds.encoder.tokenizer.token_bytes, ids)).decode()
    assert shown.index("weather") < shown.rindex("before") < shown.rindex("after")
    if content:
        assert shown.index("Bonn") < shown.index("rain") < shown.rindex("before")


@pytest.mark.parametrize(
    "wish",
    [
        {"type": "adaptive"},
        {"type": "enabled", "budget_tokens": 1024},
        {"type": "disabled"},
        {"type": "between_tools"},
    ],
)
async def test_thinking_is_a_block_of_its_own_and_comes_back(thinking: Bed, wish: Any) -> None:
    """Check 81."""
    answer = await ask(thinking, thinking=wish)
    thought, said = answer.content
    assert (thought.type, thought.thinking, said.text) == ("thinking", "hm hm", "yes")
    assert thought.signature
    assert answer.usage.output_tokens_details.thinking_tokens > 0
    assert (await final(thinking)).content[0].signature == thought.signature
    foreign = {"type": "thinking", "thinking": "hm", "signature": "foreign"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    for blocks in ([thought.model_dump(), said.model_dump()], [foreign, hidden]):
        await ask(thinking, [*HI, {"role": "assistant", "content": blocks}, *HI])


async def test_omitted_thinking_leaves_its_signature(thinking: Bed) -> None:
    """Check 81: display."""
    wish = {"type": "adaptive", "display": "omitted"}
    for answer in (await ask(thinking, thinking=wish), await final(thinking, thinking=wish)):
        assert answer.content[0].thinking == ""
        assert answer.content[0].signature


async def test_parse_gives_the_model_of_the_schema(beds: BedMaker) -> None:
    """Check 82."""
    async with beds.bed(beds.engine(beds.says('{"city": "Bonn"}'))) as bed:
        answer = await bed.anthropic.messages.parse(
            model=MODEL,
            max_tokens=50,
            messages=[{"role": "user", "content": "hi"}],
            output_format=Trip,
        )
    assert answer.parsed_output == Trip(city="Bonn")
    assert bed.engine.generations[0].constraint is not None


@pytest.mark.parametrize("effort", ["low", "max"])
async def test_effort_is_taken(bed: Bed, effort: str) -> None:
    """Check 83."""
    answer = await ask(bed, output_config={"effort": effort})
    assert answer.content[0].text == TEXT


async def test_tools_that_run_elsewhere_are_left_out_and_named(bed: Bed) -> None:
    """Check 84."""
    tools = [*TOOLS, {"type": "web_search_20250305", "name": "web_search"}]
    raw: Any = bed.anthropic.messages.with_raw_response.create
    answer = await raw(model=MODEL, max_tokens=50, messages=HI, tools=tools)
    assert answer.headers["x-tokenway-ignored-tools"] == "web_search_20250305"
    assert "web_search" not in str(answer.headers.get("warning"))


async def test_cached_tokens_move_from_input_to_cache(beds: BedMaker) -> None:
    """Check 86: the engine tells what was cached; the sum stays."""
    engine = beds.engine(beds.says(TEXT))
    async with beds.bed(engine) as bed:
        first = (await ask(bed)).usage
        engine.cached_tokens = 8
        second = (await ask(bed)).usage
        streamed = (await final(bed)).usage
    assert (first.cache_read_input_tokens, second.cache_read_input_tokens) == (0, 8)
    assert first.input_tokens == second.input_tokens + 8 == streamed.input_tokens + 8


async def test_query_and_head_are_answered(bed: Bed) -> None:
    """Check 92."""
    body = {"model": MODEL, "max_tokens": 5, "messages": HI}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        assert (await client.post("/v1/messages?beta=true", json=body)).status_code == 200
        assert (await client.head("/")).status_code == 200


async def test_billing_line_is_no_part_of_the_prompt(bed: Bed) -> None:
    """Check 94."""
    kept = {"type": "text", "text": "be brief"}
    billing = {"type": "text", "text": "x-anthropic-billing-header: cch=123"}
    await ask(bed, system=[billing, kept])
    await ask(bed, system=[kept])
    first, second = prompts(bed)
    assert first == second


async def test_images_are_refused_unless_a_placeholder_is_wanted(beds: BedMaker) -> None:
    """2.2: also inside the result of a tool."""
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "image", "source": source}],
    }
    messages = [{"role": "user", "content": [result]}]
    engine = beds.engine(beds.says(TEXT))
    async with beds.bed(engine) as bed:
        with pytest.raises(anthropic.BadRequestError, match="the model reads text"):
            await ask(bed, messages)
    async with beds.bed(engine, lambda s: replace(s, images=Images.PLACEHOLDER)) as bed:
        assert (await ask(bed, messages)).content[0].text == TEXT


async def test_state_that_is_not_kept_is_refused(bed: Bed) -> None:
    """2.2: thread and mcp_servers."""
    for extra in ({"thread": {"type": "continue"}}, {"mcp_servers": [{"name": "x"}]}):
        with pytest.raises(anthropic.BadRequestError):
            await ask(bed, extra_body=extra)
