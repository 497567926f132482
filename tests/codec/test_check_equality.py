"""One conversation, one prompt, whichever protocol it comes in by; numbers are the list's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.codec.conversation import Conversation
from services.codec.protocols.chat_completions.request import parse as parse_chat
from services.codec.protocols.messages.request import parse as parse_message
from services.codec.protocols.reading import Reading
from services.codec.protocols.responses.request import parse as parse_response
from services.codec.request import Request
from tests.codec_bed import BedMaker

READING = Reading(vocabulary_size=49152)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

TEXT = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
) | st.sampled_from(["<|im_end|>", "<tool_call>", "x\n\ny", "</think>"])


@dataclass(frozen=True, kw_only=True)
class Step:
    """A question, and an answer by way of calls or at once."""

    question: str
    said: str
    calls: tuple[tuple[str, str], ...] = ()


STEPS = st.lists(
    st.builds(
        Step,
        question=TEXT,
        said=TEXT.filter(lambda text: bool(text.strip())),
        calls=st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
    ),
    max_size=3,
)


def arguments(city: str) -> str:
    """As Messages' object is written: text of a caller is kept as it is spelled."""
    return json.dumps({"city": city}, ensure_ascii=False)


def as_chat(system: str, steps: list[Step]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for at, step in enumerate(steps):
        messages.append({"role": "user", "content": step.question})
        named = [
            {
                "id": f"c{at}_{k}",
                "type": "function",
                "function": {"name": "weather", "arguments": arguments(city)},
            }
            for k, (city, _) in enumerate(step.calls)
        ]
        messages.append({"role": "assistant", "content": step.said, "tool_calls": named})
        # Results come in another order than their calls.
        messages += [
            {"role": "tool", "tool_call_id": f"c{at}_{k}", "content": result}
            for k, (_, result) in reversed(list(enumerate(step.calls)))
        ]
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    return {"model": "m", "messages": [*messages, last(steps)], "tools": [tool]}


def as_messages(system: str, steps: list[Step]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for at, step in enumerate(steps):
        question = {"type": "text", "text": step.question}
        messages.append({"role": "user", "content": [*results, question]})
        used = [
            {"type": "tool_use", "id": f"c{at}_{k}", "name": "weather", "input": {"city": city}}
            for k, (city, _) in enumerate(step.calls)
        ]
        said = {"type": "text", "text": step.said}
        messages.append({"role": "assistant", "content": [said, *used]})
        results = [
            {"type": "tool_result", "tool_use_id": f"c{at}_{k}", "content": result}
            for k, (_, result) in enumerate(step.calls)
        ]
    end = {"type": "text", "text": last(steps)["content"]}
    messages.append({"role": "user", "content": [*results, end]})
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    body = {"model": "m", "max_tokens": 5, "messages": messages, "tools": tools}
    return body | {"system": system}


def as_response(system: str, steps: list[Step]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for at, step in enumerate(steps):
        items.append({"role": "user", "content": [{"type": "input_text", "text": step.question}]})
        said = [{"type": "output_text", "text": step.said, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": said})
        for k, (city, _) in enumerate(step.calls):
            call = {"call_id": f"c{at}_{k}", "name": "weather", "arguments": arguments(city)}
            items.append({"type": "function_call", **call})
        items += [
            {"type": "function_call_output", "call_id": f"c{at}_{k}", "output": result}
            for k, (_, result) in enumerate(step.calls)
        ]
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    return {"model": "m", "instructions": system, "input": [*items, last(steps)], "tools": tools}


def last(steps: list[Step]) -> dict[str, Any]:
    return {"role": "user", "content": f"end {len(steps)}"}


def ids(beds: BedMaker, request: Request) -> list[int]:
    assert isinstance(request.prompt, Conversation)
    return beds.encoder.encode(request.prompt)


@pytest.fixture(params=["beds", "thinkers"], scope="session")
def of(request: pytest.FixtureRequest) -> BedMaker:
    """A family with tools of its own, and one whose tools are added to the prompt."""
    maker: BedMaker = request.getfixturevalue(request.param)
    return maker


@settings(max_examples=60)
@given(system=TEXT, steps=STEPS)
def test_three_protocols_make_one_prompt(of: BedMaker, system: str, steps: list[Step]) -> None:
    """Check 103."""
    forms = {parse_chat: as_chat, parse_message: as_messages, parse_response: as_response}
    prompts = [
        ids(of, parse(READING, json.dumps(form(system, steps)).encode()))
        for parse, form in forms.items()
    ]
    assert prompts[0] == prompts[1]
    assert prompts[0] == prompts[2]


@settings(max_examples=60)
@given(system=TEXT, steps=STEPS)
def test_each_turns_prompt_begins_the_next(of: BedMaker, system: str, steps: list[Step]) -> None:
    """Check 48, over whole conversations: what was cached stays of use."""
    before: list[int] = []
    for turns in range(len(steps) + 1):
        body = as_chat(system, steps[:turns])
        # The question of each prompt is the one that the next history has.
        question = steps[turns].question if turns < len(steps) else "end"
        body["messages"][-1]["content"] = question
        now = ids(of, parse_chat(READING, json.dumps(body).encode()))
        assert now[: len(before)] == before
        before = now
