"""A body of Messages as a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.codec.conversation import Conversation, Rendering
from services.codec.protocols.fields import Fields, Value, choice, fields, integer, items, text
from services.codec.protocols.messages.tools import tools_of
from services.codec.protocols.messages.turns import opened, turns_of
from services.codec.protocols.output_format import flat_format
from services.codec.protocols.reading import Reading
from services.codec.protocols.rendering import EFFORT, reasoning_wish, template_kwargs
from services.codec.protocols.sampling import (
    MAX_COUNT,
    cache_salt_of,
    ending_of,
    priority_of,
    sampling_of,
    stop_strings,
)
from services.codec.request import Delivery, OutputFormat, ReasoningWish, Request
from services.shared.errors import InvalidRequest, Unsupported

MIN_THINKING_TOKENS = 1024

_THINKING = choice({"enabled": True, "adaptive": True, "disabled": False, "between_tools": False})


def parse(reading: Reading, body: bytes) -> Request:
    """Raises InvalidRequest naming the field, the limit and the value."""
    return _request_of(reading, reading.fields(body), needs_max_tokens=True)


def parse_count(reading: Reading, body: bytes) -> Request:
    """The body of count_tokens, which says nothing of how long the answer may be."""
    return _request_of(reading, reading.fields(body), needs_max_tokens=False)


def _request_of(reading: Reading, message: Fields, *, needs_max_tokens: bool) -> Request:
    model = message.required("model", text)
    limit = message.required if needs_max_tokens else message.optional
    max_tokens = limit("max_tokens", integer(0, MAX_COUNT))
    turns, continue_final = opened(turns_of(message))
    _refuse_unsupported(message)
    tools = tools_of(message)
    rendering = Rendering(continue_final, template_kwargs(message))
    stop = message.optional("stop_sequences", _stop_sequences) or ()
    metadata = message.optional("metadata", fields) or Fields({})
    return Request(
        model=model,
        prompt=Conversation(turns, tools.tools, tools.choice, rendering),
        sampling=sampling_of(message, reading.vocabulary_size),
        ending=ending_of(message, reading.vocabulary_size, max_tokens=max_tokens, stop=stop),
        delivery=Delivery(stream=message.flag("stream")),
        cache_salt=cache_salt_of(message),
        affinity=metadata.optional("user_id", text),
        output_format=_output_format(message),
        reasoning=_reasoning(message, rendering.template_kwargs, max_tokens),
        priority=priority_of(message),
        ignored_tools=tools.ignored,
    )


def _stop_sequences(value: Value) -> tuple[str, ...]:
    items(value)
    return stop_strings(value)


def _refuse_unsupported(message: Fields) -> None:
    """What would need other servers, or a state that is not kept here."""
    if message.optional("mcp_servers", items):
        raise Unsupported("mcp_servers is not supported", field="mcp_servers")
    thread = message.values.get("thread")
    if isinstance(thread, dict) and thread.get("type") == "continue":
        raise Unsupported("thread.type must not be continue", field="thread.type")


def _output_format(message: Fields) -> OutputFormat | None:
    """The older place is beside the messages."""
    current = _output_config(message).optional("format", flat_format)
    return current or message.optional("output_format", flat_format)


def _reasoning(message: Fields, kwargs: Mapping[str, Any], max_tokens: int | None) -> ReasoningWish:
    effort = _output_config(message).optional("effort", EFFORT)
    thinking = message.optional("thinking", fields)
    if thinking is None:
        return reasoning_wish(kwargs, effort=effort)
    thinks = thinking.required("type", _THINKING)
    _check_budget(thinking, max_tokens)
    shown = thinking.optional("display", text) != "omitted"
    return reasoning_wish(kwargs, effort=effort, thinks=thinks, shown=shown)


def _output_config(message: Fields) -> Fields:
    return message.optional("output_config", fields) or Fields({}, "output_config")


def _check_budget(thinking: Fields, max_tokens: int | None) -> None:
    if thinking.values["type"] != "enabled":
        return
    budget = thinking.required("budget_tokens", integer(MIN_THINKING_TOKENS, MAX_COUNT))
    if max_tokens is not None and budget >= max_tokens:
        path = thinking.path_of("budget_tokens")
        raise InvalidRequest(f"{path} must be < max_tokens {max_tokens}, got {budget}", field=path)
