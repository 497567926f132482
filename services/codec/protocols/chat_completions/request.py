"""A body of Chat Completions as a request."""

from __future__ import annotations

from services.codec.conversation import Conversation, Rendering, Role, Tool, ToolMode, Turn
from services.codec.protocols.chat_completions.turns import turn_of
from services.codec.protocols.chat_completions.unsupported import refuse_unsupported
from services.codec.protocols.fields import Fields, Value, choice, fields, integer, list_of, text
from services.codec.protocols.json_body import object_of
from services.codec.protocols.rendering import EFFORT, template_kwargs
from services.codec.protocols.sampling import (
    MAX_COUNT,
    cache_salt_of,
    ending_of,
    sampling_of,
    stop_strings,
)
from services.codec.protocols.tool_definitions import check_callable, tool_of
from services.codec.request import Delivery, Request
from services.shared.errors import InvalidRequest

_MODES = {"none": ToolMode.NONE, "auto": ToolMode.AUTO, "required": ToolMode.REQUIRED}


def parse(body: bytes, vocabulary_size: int) -> Request:
    """Raises InvalidRequest naming the field, the limit and the value."""
    chat = object_of(body)
    model = chat.required("model", text)
    turns = tuple(chat.required("messages", list_of(turn_of, at_least=1)))
    refuse_unsupported(chat)
    stop = chat.optional("stop", stop_strings) or ()
    return Request(
        model=model,
        prompt=Conversation(turns=turns, tools=_tools(chat), rendering=_rendering(chat, turns)),
        sampling=sampling_of(chat, vocabulary_size),
        ending=ending_of(chat, vocabulary_size, max_tokens=_max_tokens(chat), stop=stop),
        delivery=_delivery(chat),
        cache_salt=cache_salt_of(chat),
        affinity=chat.optional("prompt_cache_key", text) or chat.optional("user", text),
    )


def _max_tokens(chat: Fields) -> int | None:
    """The newer name wins."""
    limit = integer(1, MAX_COUNT)
    newer, older = chat.optional("max_completion_tokens", limit), chat.optional("max_tokens", limit)
    return newer if newer is not None else older


def _delivery(chat: Fields) -> Delivery:
    options = chat.optional("stream_options", fields) or Fields({})
    return Delivery(
        stream=chat.flag("stream"),
        show_control_tokens=not chat.flag("skip_special_tokens", default=True),
        usage_at_end=options.flag("include_usage"),
    )


def _rendering(chat: Fields, turns: tuple[Turn, ...]) -> Rendering:
    continue_final = chat.flag("continue_final_message")
    if continue_final and chat.flag("add_generation_prompt"):
        raise InvalidRequest(
            "add_generation_prompt must not be true with continue_final_message",
            field="add_generation_prompt",
        )
    if continue_final and turns[-1].role is not Role.ASSISTANT:
        raise InvalidRequest(
            "continue_final_message needs an assistant message at the end of messages",
            field="continue_final_message",
        )
    effort = chat.optional("reasoning_effort", EFFORT)
    return Rendering(continue_final=continue_final, template_kwargs=template_kwargs(chat, effort))


def _tools(chat: Fields) -> tuple[Tool, ...]:
    """The tools, which stay part of the prompt though none may be called."""
    tools = tuple(chat.optional("tools", list_of(_tool)) or ())
    mode = chat.optional("tool_choice", _tool_mode) or ToolMode.AUTO
    if mode is ToolMode.REQUIRED and not chat.has("tools"):
        raise InvalidRequest("tool_choice needs tools", field="tool_choice")
    check_callable(mode, tools)
    return tools


def _tool(value: Value) -> Tool:
    tool = fields(value)
    tool.required("type", choice({"function": "function"}))
    return tool_of(tool.required("function", fields), "parameters")


def _tool_mode(value: Value) -> ToolMode:
    """Objects name functions, which is to require one."""
    if isinstance(value.json, dict):
        return ToolMode.REQUIRED
    return choice(_MODES)(value)
