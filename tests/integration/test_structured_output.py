"""Formats and demanded calls through all services: the real model keeps to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import jsonschema
import openai
import pytest

from tests.integration.stack import PATIENCE_S, Stack
from tests.schemas import SCHEMAS

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "colour": {"enum": ["red", "green"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "colour", "age"],
    "additionalProperties": False,
}
TOOL: Any = {"name": "remember", "description": "Remembers a person.", "parameters": PERSON}
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}


@pytest.fixture
def client(stack: Stack) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{stack.url}/v1", api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        yield client


def test_a_schema_is_kept_whole_and_streamed(stack: Stack, client: openai.OpenAI) -> None:
    asked = stack.chat("Describe a person.", seed=5, temperature=1, max_tokens=100)
    asked |= {"response_format": FORMAT}
    whole = client.chat.completions.create(**asked).choices[0]
    jsonschema.validate(json.loads(whole.message.content), PERSON)
    assert whole.finish_reason == "stop"
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == (
        whole.message.content
    )


async def test_thirty_schemas_are_kept_whole_and_streamed_at_temperature_1(stack: Stack) -> None:
    async with openai.AsyncOpenAI(
        base_url=f"{stack.url}/v1", api_key="unused", timeout=4 * PATIENCE_S, max_retries=0
    ) as client:
        texts = await asyncio.gather(
            *(both(client, stack, number, schema) for number, schema in enumerate(SCHEMAS))
        )
    for (whole, streamed), schema in zip(texts, SCHEMAS, strict=True):
        assert whole == streamed
        jsonschema.validate(json.loads(whole), schema)


async def both(
    client: openai.AsyncOpenAI, stack: Stack, seed: int, schema: dict[str, Any]
) -> tuple[str, str]:
    """One answer, whole and streamed."""
    asked = stack.chat("Give me an example.", seed=seed, temperature=1, max_tokens=150)
    asked |= {"response_format": {**FORMAT, "json_schema": {"name": "any", "schema": schema}}}
    whole = await client.chat.completions.create(**asked)
    chunks = [chunk async for chunk in await client.chat.completions.create(**asked, stream=True)]
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    return whole.choices[0].message.content, streamed


def test_messages_keep_a_schema(stack: Stack) -> None:
    with anthropic.Anthropic(
        base_url=stack.url, api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        told = client.messages.create(
            **stack.chat("Describe a person.", max_tokens=100),
            extra_body={
                "temperature": 1,
                "output_config": {"format": {"type": "json_schema", "schema": PERSON}},
            },
        )
    jsonschema.validate(json.loads(told.content[0].text), PERSON)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "remember"}}]
)
def test_a_demanded_call_is_made(simulated_stack: Stack, choice: Any) -> None:
    with openai.OpenAI(
        base_url=f"{simulated_stack.url}/v1", api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        told = client.chat.completions.create(
            **simulated_stack.chat("Hi.", seed=3, max_tokens=200),
            tools=[{"type": "function", "function": TOOL}],
            tool_choice=choice,
            parallel_tool_calls=False,
        ).choices[0]
    assert told.finish_reason == "tool_calls"
    assert told.message.tool_calls is not None
    (call,) = told.message.tool_calls
    assert call.type == "function"
    assert call.function.name == "remember"
    jsonschema.validate(json.loads(call.function.arguments), PERSON)


@pytest.mark.parametrize(
    ("extra", "param", "told"),
    [
        (
            {"response_format": {**FORMAT, "json_schema": {"name": "n", "schema": {"not": {}}}}},
            "response_format.json_schema.schema.not",
            "not supported",
        ),
        ({"extra_body": {"guided_regex": "(a"}}, "constraint", "unclosed group"),
        ({"extra_body": {"guided_grammar": "start: ("}}, "constraint", "Expected token"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_once(
    stack: Stack, client: openai.OpenAI, extra: dict[str, Any], param: str, told: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(**stack.chat("Hi.", max_tokens=10, stream=True), **extra)
    assert refusal.value.param == param
    assert told in refusal.value.message
