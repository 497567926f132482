"""Conformance of Responses as its official SDK sees it; numbers are the list's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pydantic
import pytest

from services.shared.errors import Code
from services.shared.stream.events import Failed
from tests.codec_bed import MODEL, Bed, BedMaker

TEXT = "Hello 日本語 🦀!"
FLAT: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
CALL = '<tool_call>[{"name": "weather", "arguments": {"city": "Bonn"}}]</tool_call>'
THOUGHT = "<think>hm hm</think>\n\nyes"


class Trip(pydantic.BaseModel):
    city: str


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed:
        yield bed


async def ask(bed: Bed, given: Any = "hi", **options: Any) -> Any:
    create: Any = bed.openai.responses.create
    return await create(model=MODEL, input=given, **options)


async def events_of(bed: Bed, **options: Any) -> tuple[list[Any], Any]:
    helper: Any = bed.openai.responses.stream
    async with helper(model=MODEL, input="hi", **options) as stream:
        events = [event async for event in stream]
        return events, await stream.get_final_response()


async def test_answer_has_text_status_and_usage(bed: Bed) -> None:
    """Check 95."""
    answer = await ask(bed, store=False, instructions="be brief", metadata={"a": "b"})
    assert (answer.output_text, answer.status, answer.object) == (TEXT, "completed", "response")
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert (answer.metadata, answer.instructions, answer.error) == ({"a": "b"}, "be brief", None)
    assert answer.previous_response_id is None


async def test_events_have_the_documented_order_and_numbers(bed: Bed) -> None:
    """Check 96."""
    events, response = await events_of(bed)
    kinds = [event.type.removeprefix("response.") for event in events]
    deltas = [at for at, kind in enumerate(kinds) if kind == "output_text.delta"]
    assert kinds[: deltas[0]] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
    ]
    assert kinds[deltas[-1] + 1 :] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert response.output_text == TEXT


async def test_stream_and_whole_are_one_answer(thinkers: BedMaker) -> None:
    """Checks 96 and 97."""
    called = json.dumps({"name": "weather", "arguments": {"city": "Bonn"}})
    said = f"<think>hm</think>Look.\n<tool_call>{called}</tool_call>"
    async with thinkers.bed(thinkers.engine(thinkers.says(said))) as bed:
        whole = await ask(bed, tools=[FLAT])
        events, streamed = await events_of(bed, tools=[FLAT])
    done = [event.item for event in events if event.type == "response.output_item.done"]

    def shown(items: Any) -> list[dict[str, Any]]:
        named = {"id", "call_id", "parsed_arguments"}
        return [
            json.loads(item.model_dump_json(exclude=named, exclude_unset=True)) for item in items
        ]

    assert [item["type"] for item in shown(whole.output)] == [
        "reasoning",
        "message",
        "function_call",
    ]
    assert shown(done) == shown(whole.output)
    assert [item.id for item in done] == [item.id for item in streamed.output]
    assert len({item.id for item in done}) == 3


@pytest.mark.parametrize("output", ["rain", [{"type": "input_text", "text": "rain"}]])
async def test_flat_tool_goes_round(beds: BedMaker, output: Any) -> None:
    """Check 97."""
    async with beds.bed(beds.engine(beds.says(CALL))) as bed:
        first = await ask(bed, tools=[FLAT])
        (call,) = first.output
        assert (call.type, json.loads(call.arguments)) == ("function_call", {"city": "Bonn"})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": output}
        history = [{"role": "user", "content": "hi"}, call.model_dump(), result]
        second = await ask(bed, history, tools=[FLAT])
    assert second.status == "completed"
    one, other = (list(generation.prompt_ids) for generation in bed.engine.generations)
    assert other[: len(one)] == one


CODEX: list[dict[str, Any]] = [
    FLAT,
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "edits",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    },
    {"type": "namespace", "name": "mcp__files", "tools": [FLAT | {"name": "read"}]},
    {"type": "web_search", "external_web_access": True},
    {"type": "image_generation", "output_format": "png"},
    {"type": "tool_search"},
    {"type": "local_shell"},
]


async def test_tools_of_agents_are_taken_or_left_out(bed: Bed) -> None:
    """Check 98."""
    raw: Any = bed.openai.responses.with_raw_response.create
    answer = await raw(model=MODEL, input="hi", tools=CODEX, tool_choice="auto", store=False)
    assert answer.headers["x-tokenway-ignored-tools"] == (
        "image_generation, local_shell, tool_search, web_search"
    )
    assert answer.parse().output_text == TEXT


@pytest.mark.parametrize("stream", [True, False])
async def test_custom_and_namespaced_calls_have_the_callers_names(
    beds: BedMaker, stream: bool
) -> None:
    """Check 98."""
    called = [
        {"name": "apply_patch", "arguments": {"input": "*** Begin\n+a"}},
        {"name": "mcp__files__read", "arguments": {"city": "x"}},
    ]
    said = f"<tool_call>{json.dumps(called)}</tool_call>"
    async with beds.bed(beds.engine(beds.says(said))) as bed:
        answer = (await events_of(bed, tools=CODEX))[1] if stream else await ask(bed, tools=CODEX)
        custom, named = (item.model_dump() for item in answer.output)
        assert (custom["type"], custom["name"]) == ("custom_tool_call", "apply_patch")
        assert custom["input"] == "*** Begin\n+a"
        assert (named["type"], named["name"], named["namespace"]) == (
            "function_call",
            "read",
            "mcp__files",
        )
        done = {"type": "custom_tool_call_output", "call_id": custom["call_id"], "output": "ok"}
        read = {"type": "function_call_output", "call_id": named["call_id"], "output": "ok"}
        history = [{"role": "user", "content": "hi"}, custom, named, done, read]
        await ask(bed, history, tools=CODEX)
    one, other = (list(generation.prompt_ids) for generation in bed.engine.generations)
    assert other[: len(one)] == one


@pytest.mark.parametrize("stream", [True, False])
async def test_limit_is_an_incomplete_response(bed: Bed, stream: bool) -> None:
    """Check 99."""
    answer = await ask(bed, max_output_tokens=1, stream=stream)
    if stream:
        last = [event async for event in answer][-1]
        assert last.type == "response.incomplete"
        answer = last.response
    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.usage.output_tokens == 1


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "c"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"given": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"given": []}, "input"),
        (
            {"given": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type",
        ),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"tool_choice": {"type": "function", "name": "nope"}, "tools": [FLAT]}, "tool_choice"),
    ],
)
async def test_what_needs_state_is_refused_by_name(
    bed: Bed, options: dict[str, Any], param: str
) -> None:
    """Check 100."""
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(bed, **options)
    assert caught.value.param == param


async def test_parse_gives_the_model_of_the_schema(beds: BedMaker) -> None:
    """Check 101."""
    async with beds.bed(beds.engine(beds.says('{"city": "Bonn"}'))) as bed:
        answer = await bed.openai.responses.parse(model=MODEL, input="hi", text_format=Trip)
    assert answer.output_parsed == Trip(city="Bonn")
    assert bed.engine.generations[0].constraint is not None


async def test_reasoning_comes_back_sealed_or_plain_or_foreign(thinkers: BedMaker) -> None:
    """Check 102."""
    async with thinkers.bed(thinkers.engine(thinkers.says(THOUGHT))) as bed:
        first = await ask(bed, include=["reasoning.encrypted_content"])
        thought, said = (item.model_dump() for item in first.output)
        assert thought["content"][0]["text"] == "hm hm"
        assert thought["encrypted_content"]
        sealed = thought | {"content": None}
        forms = [
            thought,
            sealed,
            sealed | {"encrypted_content": "Zm9yZWlnbg=="},
            thought | {"encrypted_content": None},
        ]
        for form in forms:
            answer = await ask(
                bed,
                [
                    {"role": "user", "content": "hi"},
                    form,
                    said,
                    {"role": "user", "content": "go on"},
                ],
            )
            assert answer.status == "completed"
        plain = await ask(bed)
    assert "encrypted_content" not in plain.output[0].model_dump(exclude_unset=True)
    ids = [list(generation.prompt_ids) for generation in bed.engine.generations[1:5]]
    assert ids[0] == ids[1] == ids[3]


async def test_input_tokens_are_those_of_the_answer(bed: Bed) -> None:
    """2.6 and 1.11: one way to count."""
    options: dict[str, Any] = {"instructions": "be brief", "tools": CODEX}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        body = {"model": MODEL, "input": "hi", **options}
        told = (await client.post("/v1/responses/input_tokens", json=body)).json()
    answer = await ask(bed, **options)
    assert told == {
        "object": "response.input_tokens",
        "input_tokens": answer.usage.input_tokens,
    }


async def test_failure_in_a_stream_is_an_error_and_a_failed_response(beds: BedMaker) -> None:
    """Section 3."""
    ids = beds.encoder.encode_text(TEXT)
    broken = Failed(code=Code.UNAVAILABLE, message="gone")
    async with beds.bed(beds.engine(lambda _: [ids, broken])) as bed:
        events = [event async for event in await ask(bed, stream=True)]
    assert [event.type for event in events][-2:] == ["error", "response.failed"]
    assert events[-1].response.error.code == "server_error"


async def test_raw_frames_name_their_event(bed: Bed) -> None:
    """Section 3."""
    body = {"model": MODEL, "input": "hi", "stream": True}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        frames = (await client.post("/v1/responses", json=body)).text.split("\n\n")
    for frame in frames[:-1]:
        named, data = frame.split("\n")
        assert named.removeprefix("event: ") == json.loads(data.removeprefix("data: "))["type"]


async def test_overlong_input_says_what_agents_look_for(bed: Bed) -> None:
    """Check 24, as Codex reads it: the code tells that the conversation must be shortened."""
    with pytest.raises(
        openai.BadRequestError, match=r"maximum context length is \d+ tokens"
    ) as far:
        await ask(bed, "word " * 5000)
    assert (far.value.code, far.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(openai.BadRequestError) as caught:
        await bed.openai.completions.create(model=MODEL, prompt="word " * 5000)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "prompt")
