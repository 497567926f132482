"""Conformance of structured output and tools in Chat Completions; numbers are the list's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pydantic
import pytest

from services.codec.conversation import ToolMode
from services.codec.protocols.chat_completions.request import parse
from services.codec.protocols.reading import Reading
from services.shared.errors import InvalidRequest
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.scripted_engine import Script, refusing

HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "time"}},
]
READING = Reading(vocabulary_size=49152)


class Trip(pydantic.BaseModel):
    city: str
    days: int


def calls(*of: tuple[str, dict[str, Any]]) -> str:
    """As SmolLM2 writes them."""
    listed = [{"name": name, "arguments": arguments} for name, arguments in of]
    return f"<tool_call>{json.dumps(listed, ensure_ascii=False)}</tool_call>"


WEATHER = ("weather", {"city": "Köln", "days": 2})
TIME: tuple[str, dict[str, Any]] = ("time", {})


async def ask(beds: BedMaker, said: str | Script, messages: Any = HI, **options: Any) -> Any:
    script = beds.says(said) if isinstance(said, str) else said
    async with beds.bed(beds.engine(script)) as bed:
        create: Any = bed.openai.chat.completions.create
        return await create(model=MODEL, messages=messages, **options)


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says("fine"))) as bed:
        yield bed


async def test_parse_gives_the_model_of_the_schema(beds: BedMaker) -> None:
    """Check 31."""
    async with beds.bed(beds.engine(beds.says('{"city": "Bonn", "days": 3}'))) as bed:
        answer = await bed.openai.chat.completions.parse(
            model=MODEL, messages=[{"role": "user", "content": "hi"}], response_format=Trip
        )
    assert answer.choices[0].message.parsed == Trip(city="Bonn", days=3)
    assert bed.engine.generations[0].constraint is not None


async def test_json_object_is_demanded_of_the_engine(beds: BedMaker) -> None:
    """Check 32."""
    async with beds.bed(beds.engine(beds.says('{"a": 1}'))) as bed:
        answer = await bed.openai.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "hi"}],
            response_format={"type": "json_object"},
        )
    assert json.loads(answer.choices[0].message.content or "") == {"a": 1}
    assert bed.engine.generations[0].constraint is not None


async def test_schema_that_no_grammar_expresses_is_refused_by_its_keyword(bed: Bed) -> None:
    """Check 33."""
    schema = {"type": "object", "properties": {"a": {"not": {}}}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    with pytest.raises(openai.BadRequestError) as caught:
        await bed.openai.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}], response_format=form
        )
    assert caught.value.param == "response_format.json_schema.schema.properties.a.not"
    assert not bed.engine.generations


async def test_schema_that_the_engine_refuses_is_no_answer(beds: BedMaker) -> None:
    """Check 33."""
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "nonsense"}}}
    wrong = refusing(InvalidRequest("constraint: no such type", field="constraint"))
    with pytest.raises(openai.BadRequestError, match="no such type"):
        await ask(beds, wrong, response_format=form, stream=True)


async def test_cut_off_structure_raises_in_the_sdk(beds: BedMaker) -> None:
    """Check 34."""
    async with beds.bed(beds.engine(beds.says('{"city": "Bonn", "days": 3}'))) as bed:
        with pytest.raises(openai.LengthFinishReasonError):
            await bed.openai.chat.completions.parse(
                model=MODEL,
                messages=[{"role": "user", "content": "hi"}],
                response_format=Trip,
                max_tokens=3,
            )


async def test_call_is_a_call_and_no_content(beds: BedMaker) -> None:
    """Check 35."""
    answer = await ask(beds, calls(WEATHER), tools=TOOLS, tool_choice="auto")
    choice = answer.choices[0]
    (call,) = choice.message.tool_calls
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    assert (call.type, call.function.name) == ("function", "weather")
    assert json.loads(call.function.arguments) == WEATHER[1]
    assert call.id.startswith("call_")


async def test_plain_text_has_no_key_of_calls(beds: BedMaker) -> None:
    """Check 36."""
    answer = await ask(beds, "no need", tools=TOOLS)
    choice = answer.choices[0]
    assert "tool_calls" not in choice.message.model_dump(exclude_unset=True)
    assert (choice.finish_reason, choice.message.content) == ("stop", "no need")


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "weather"}},
    ],
)
async def test_demanded_call_is_demanded_of_the_engine(beds: BedMaker, choice: Any) -> None:
    """Checks 37 and 38."""
    async with beds.bed(beds.engine(beds.says(calls(WEATHER)))) as bed:
        create: Any = bed.openai.chat.completions.create
        answer = await create(model=MODEL, messages=HI, tools=TOOLS, tool_choice=choice)
    assert answer.choices[0].message.tool_calls[0].function.name == "weather"
    assert answer.choices[0].finish_reason == "tool_calls"
    constraint = bed.engine.generations[0].constraint
    assert constraint is not None
    assert "weather" in constraint.source
    assert ("time" in constraint.source) == (choice == "required")


async def test_no_call_is_wanted_and_markers_are_text(beds: BedMaker) -> None:
    """Check 39."""
    said = calls(WEATHER)
    answer = await ask(beds, said, tools=TOOLS, tool_choice="none")
    choice = answer.choices[0]
    assert (choice.message.content, choice.message.tool_calls) == (said, None)
    assert choice.finish_reason == "stop"


@pytest.mark.parametrize(
    "options",
    [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "nope"}}},
        {"tools": TOOLS, "tool_choice": "sometimes"},
    ],
)
async def test_choice_without_its_tool_is_refused(bed: Bed, options: dict[str, Any]) -> None:
    """Check 40."""
    create: Any = bed.openai.chat.completions.create
    with pytest.raises(openai.BadRequestError) as caught:
        await create(model=MODEL, messages=HI, **options)
    assert str(caught.value.param).startswith("tool_choice")


@pytest.mark.parametrize("choice", ["none", "auto"])
async def test_no_tools_and_no_demand_are_let_be(bed: Bed, choice: str) -> None:
    """Check 40."""
    create: Any = bed.openai.chat.completions.create
    answer = await create(model=MODEL, messages=HI, tool_choice=choice, tools=[])
    assert answer.choices[0].message.content == "fine"


async def test_only_the_first_call_where_one_is_wanted(beds: BedMaker) -> None:
    """Check 41."""
    answer = await ask(beds, calls(WEATHER, TIME), tools=TOOLS, parallel_tool_calls=False)
    assert len(answer.choices[0].message.tool_calls) == 1
    assert answer.choices[0].finish_reason == "tool_calls"


def test_allowed_tools_narrow_the_choice() -> None:
    """Check 42."""
    named = [{"type": "function", "function": {"name": "time"}}]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": named}}
    body = {"model": MODEL, "messages": HI, "tools": TOOLS, "tool_choice": allowed}
    request = parse(READING, json.dumps(body).encode())
    choice: Any = getattr(request.prompt, "tool_choice", None)
    assert (choice.mode, choice.names) == (ToolMode.REQUIRED, ("time",))
    assert [tool.name for tool in request.tools] == ["weather", "time"]


async def test_call_of_a_tool_that_is_not_allowed_is_text(beds: BedMaker) -> None:
    """Check 42."""
    named = [{"type": "function", "function": {"name": "time"}}]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
    answer = await ask(beds, calls(WEATHER), tools=TOOLS, tool_choice=allowed)
    assert answer.choices[0].message.tool_calls is None


async def test_arguments_are_exact_whatever_is_in_them(beds: BedMaker) -> None:
    """Check 43."""
    wild = {"city": 'a "b" </tool_call> <|im_end|> \\ 🦀 日本', "more": {"x": [1, {"y": None}]}}
    answer = await ask(beds, calls(("weather", wild)), tools=TOOLS)
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.arguments == json.dumps(wild, ensure_ascii=False)


async def test_no_arguments_are_an_empty_object(beds: BedMaker) -> None:
    """Check 44."""
    answer = await ask(beds, '<tool_call>[{"name": "time"}]</tool_call>', tools=TOOLS)
    assert answer.choices[0].message.tool_calls[0].function.arguments == "{}"


async def test_two_calls_have_places_and_names_of_their_own(beds: BedMaker) -> None:
    """Check 45."""
    async with beds.bed(beds.engine(beds.says(calls(WEATHER, TIME)))) as bed:
        create: Any = bed.openai.chat.completions.create
        stream = await create(model=MODEL, messages=HI, tools=TOOLS, stream=True)
        deltas = [chunk.choices[0].delta async for chunk in stream]
    starts = [call for delta in deltas for call in delta.tool_calls or () if call.id]
    assert [call.index for call in starts] == [0, 1]
    assert len({call.id for call in starts}) == 2


async def test_text_before_a_call_stays(beds: BedMaker) -> None:
    """Check 46."""
    answer = await ask(beds, f"I look.\n{calls(WEATHER)}", tools=TOOLS)
    message = answer.choices[0].message
    assert (message.content, len(message.tool_calls)) == ("I look.", 1)


@pytest.mark.parametrize("stream", [True, False])
async def test_call_cut_off_is_a_length(beds: BedMaker, stream: bool) -> None:
    """Check 47."""
    options = {"tools": TOOLS, "max_tokens": 16}
    async with beds.bed(beds.engine(beds.says(calls(WEATHER)))) as bed:
        create: Any = bed.openai.chat.completions.create
        answer = await create(model=MODEL, messages=HI, stream=stream, **options)
        reasons = (
            [chunk.choices[0].finish_reason async for chunk in answer]
            if stream
            else [answer.choices[0].finish_reason]
        )
    assert reasons[-1] == "length"


async def test_next_turn_begins_with_the_ids_of_the_turn_before(beds: BedMaker) -> None:
    """Check 48: the prompt of turn k is a prefix of that of turn k + 1."""
    async with beds.bed(beds.engine(beds.says(calls(WEATHER)))) as bed:
        create: Any = bed.openai.chat.completions.create
        first = await create(model=MODEL, messages=HI, tools=TOOLS)
        message = first.choices[0].message
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
        history = [*HI, message.model_dump(), result]
        await create(model=MODEL, messages=history, tools=TOOLS)
    one, other = (list(generation.prompt_ids) for generation in bed.engine.generations)
    assert other[: len(one)] == one


async def test_custom_tool_takes_text(beds: BedMaker) -> None:
    """1.6: to the model a custom tool is a function of one text."""
    tools = [{"type": "custom", "custom": {"name": "patch", "description": "d"}}]
    said = calls(("patch", {"input": "line one\nline two"}))
    answer = await ask(beds, said, tools=tools)
    (call,) = answer.choices[0].message.tool_calls
    assert (call.type, call.custom.name, call.custom.input) == (
        "custom",
        "patch",
        "line one\nline two",
    )


async def test_functions_as_they_were_before_tools(beds: BedMaker) -> None:
    """1.1: functions and function_call are mapped, and answered in kind."""
    functions = [TOOLS[0]["function"]]
    answer = await ask(beds, calls(WEATHER), functions=functions, function_call="auto")
    choice = answer.choices[0]
    assert choice.finish_reason == "function_call"
    assert json.loads(choice.message.function_call.arguments) == WEATHER[1]
    assert choice.message.tool_calls is None
