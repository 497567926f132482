"""A body of Responses as a request."""

from __future__ import annotations

from typing import Any

from services.codec.conversation import Conversation, Rendering, Role, Text, Turn
from services.codec.protocols.fields import (
    Fields,
    Value,
    fields,
    free_object,
    integer,
    items,
    list_of,
    text,
)
from services.codec.protocols.output_format import flat_format
from services.codec.protocols.reading import Reading
from services.codec.protocols.rendering import EFFORT, reasoning_wish, template_kwargs
from services.codec.protocols.responses.items import Input
from services.codec.protocols.responses.tools import tools_of
from services.codec.protocols.sampling import (
    MAX_COUNT,
    cache_salt_of,
    ending_of,
    priority_of,
    sampling_of,
    stop_strings,
)
from services.codec.request import Delivery, OutputFormat, Request
from services.shared.errors import MissingField, Unsupported

SEALED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
INCLUDE = "include"

MAX_TOP_LOGPROBS = 20

_STATEFUL = ("previous_response_id", "conversation", "prompt")
_REPEATED = (
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)


def parse(reading: Reading, body: bytes) -> Request:
    """Raises InvalidRequest naming the field, the limit and the value."""
    asked = reading.fields(body)
    model = asked.required("model", text)
    _refuse_state(asked)
    said = _input_of(asked, reading)
    tools = tools_of(asked, said.tools)
    rendering = Rendering(template_kwargs=template_kwargs(asked))
    limit = asked.optional("max_output_tokens", integer(1, MAX_COUNT))
    stop = asked.optional("stop", stop_strings) or ()
    return Request(
        model=model,
        prompt=Conversation(said.ordered(), tools.tools, tools.choice, rendering),
        sampling=sampling_of(asked, reading.vocabulary_size),
        ending=ending_of(asked, reading.vocabulary_size, max_tokens=limit, stop=stop),
        delivery=Delivery(stream=asked.flag("stream"), top_logprobs=_top_logprobs(asked)),
        cache_salt=cache_salt_of(asked),
        affinity=asked.optional("prompt_cache_key", text) or asked.optional("user", text),
        output_format=_output_format(asked),
        reasoning=reasoning_wish(rendering.template_kwargs, effort=_effort(asked)),
        priority=priority_of(asked),
        echo=_echo(asked),
        ignored_tools=tools.ignored,
    )


def _refuse_state(asked: Fields) -> None:
    """Nothing is kept between requests: the input must be whole."""
    for name in _STATEFUL:
        if asked.has(name):
            raise Unsupported(f"{name} is not supported: send the whole input", field=name)
    if asked.flag("background"):
        raise Unsupported("background must be false", field="background")


def _input_of(asked: Fields, reading: Reading) -> Input:
    said = Input(reading.seal)
    instructions = asked.optional("instructions", text)
    if instructions:
        said.turns.append(Turn(Role.SYSTEM, (Text(instructions),)))
    given = asked.required("input", lambda value: value)
    if isinstance(given.json, str):
        said.turns.append(Turn(Role.USER, (Text(text(given)),)))
    else:
        for item in items(given):
            said.take(item)
    if not said.turns:
        raise MissingField("input must not be empty", field="input")
    return said


def _effort(asked: Fields) -> str | None:
    reasoning = asked.optional("reasoning", fields) or Fields({}, "reasoning")
    return reasoning.optional("effort", EFFORT)


def _output_format(asked: Fields) -> OutputFormat | None:
    form = asked.optional("text", fields) or Fields({}, "text")
    return form.optional("format", flat_format)


def included(asked: Fields) -> list[str]:
    return asked.optional(INCLUDE, list_of(text)) or []


def _top_logprobs(asked: Fields) -> int | None:
    top = asked.optional("top_logprobs", integer(0, MAX_TOP_LOGPROBS))
    return (top or 0) if top or LOGPROBS in included(asked) else None


def _echo(asked: Fields) -> dict[str, Any]:
    """What the answer repeats. `include` says what it holds."""
    repeated = {
        name: free_object(Value({name: asked.values[name]}, name))[name]
        for name in _REPEATED
        if asked.has(name)
    }
    return repeated | {INCLUDE: included(asked)}
