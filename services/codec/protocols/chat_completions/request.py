"""A body of Chat Completions as a request."""

from __future__ import annotations

from services.codec.conversation import Conversation, Rendering, Role, Turn
from services.codec.protocols.chat_completions.delivery import delivery_of
from services.codec.protocols.chat_completions.tools import echo_of, tools_of
from services.codec.protocols.chat_completions.turns import turn_of
from services.codec.protocols.chat_completions.unsupported import refuse_unsupported
from services.codec.protocols.fields import Fields, integer, list_of, text
from services.codec.protocols.output_format import chat_format, extended_format
from services.codec.protocols.reading import Reading
from services.codec.protocols.rendering import EFFORT, reasoning_wish, template_kwargs
from services.codec.protocols.sampling import (
    MAX_COUNT,
    cache_salt_of,
    choices_of,
    ending_of,
    priority_of,
    sampling_of,
    stop_strings,
)
from services.codec.protocols.tool_results import in_call_order
from services.codec.request import OutputFormat, Request
from services.shared.errors import InvalidRequest, Unsupported


def parse(reading: Reading, body: bytes) -> Request:
    """Raises InvalidRequest naming the field, the limit and the value."""
    chat = reading.fields(body)
    model = chat.required("model", text)
    turns = in_call_order(chat.required("messages", list_of(turn_of, at_least=1)))
    refuse_unsupported(chat)
    tools, tool_choice = tools_of(chat)
    rendering = _rendering(chat, turns)
    stop = chat.optional("stop", stop_strings) or ()
    return Request(
        model=model,
        prompt=Conversation(turns, tools, tool_choice, rendering),
        sampling=sampling_of(chat, reading.vocabulary_size),
        ending=ending_of(chat, reading.vocabulary_size, max_tokens=_max_tokens(chat), stop=stop),
        delivery=delivery_of(chat),
        cache_salt=cache_salt_of(chat),
        affinity=chat.optional("prompt_cache_key", text) or chat.optional("user", text),
        choices=choices_of(chat),
        output_format=_output_format(chat),
        reasoning=reasoning_wish(
            rendering.template_kwargs,
            effort=chat.optional("reasoning_effort", EFFORT),
            shown=chat.flag("include_reasoning", default=True),
        ),
        priority=priority_of(chat),
        echo=echo_of(chat),
    )


def _max_tokens(chat: Fields) -> int | None:
    """The newer name wins."""
    limit = integer(1, MAX_COUNT)
    newer, older = chat.optional("max_completion_tokens", limit), chat.optional("max_tokens", limit)
    return newer if newer is not None else older


def _output_format(chat: Fields) -> OutputFormat | None:
    standard = chat.optional("response_format", chat_format)
    extended = extended_format(chat)
    if standard is not None and extended is not None:
        raise InvalidRequest(
            "response_format must not be given with another format", field="response_format"
        )
    return standard if extended is None else extended


def _rendering(chat: Fields, turns: tuple[Turn, ...]) -> Rendering:
    continue_final = chat.flag("continue_final_message")
    adds_prompt = chat.flag("add_generation_prompt", default=not continue_final)
    if continue_final and adds_prompt:
        raise InvalidRequest(
            "add_generation_prompt must not be true with continue_final_message",
            field="add_generation_prompt",
        )
    if continue_final and turns[-1].role is not Role.ASSISTANT:
        raise InvalidRequest(
            "continue_final_message needs an assistant message at the end of messages",
            field="continue_final_message",
        )
    if not continue_final and not adds_prompt:
        raise Unsupported(
            "add_generation_prompt must be true unless continue_final_message is",
            field="add_generation_prompt",
        )
    return Rendering(continue_final=continue_final, template_kwargs=template_kwargs(chat))
