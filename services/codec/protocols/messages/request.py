"""A body of Messages as a request."""

from __future__ import annotations

from services.codec.conversation import Conversation, Rendering, Tool, ToolMode
from services.codec.protocols.fields import (
    Fields,
    Value,
    choice,
    fields,
    integer,
    items,
    text,
)
from services.codec.protocols.json_body import object_of
from services.codec.protocols.messages.turns import opened, turns_of
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
from services.shared.errors import InvalidRequest, Unsupported

MIN_THINKING_TOKENS = 1024

_THINKING = {"enabled": True, "adaptive": True, "disabled": False, "between_tools": False}
_MODES = {
    "none": ToolMode.NONE,
    "auto": ToolMode.AUTO,
    "any": ToolMode.REQUIRED,
    "tool": ToolMode.REQUIRED,
}
_SERVER_TOOLS = ("web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset")


def parse(body: bytes, vocabulary_size: int) -> Request:
    """Raises InvalidRequest naming the field, the limit and the value."""
    return _request_of(object_of(body), vocabulary_size, needs_max_tokens=True)


def parse_count(body: bytes, vocabulary_size: int) -> Request:
    """The body of count_tokens, which says nothing of how long the answer may be."""
    return _request_of(object_of(body), vocabulary_size, needs_max_tokens=False)


def _request_of(message: Fields, vocabulary_size: int, *, needs_max_tokens: bool) -> Request:
    model = message.required("model", text)
    limit = integer(0, MAX_COUNT)
    max_tokens = (
        message.required("max_tokens", limit)
        if needs_max_tokens
        else message.optional("max_tokens", limit)
    )
    turns, continue_final = opened(turns_of(message))
    _refuse_unsupported(message)
    rendering = Rendering(
        continue_final=continue_final, template_kwargs=_template_kwargs(message, max_tokens)
    )
    stop = message.optional("stop_sequences", _stop_sequences) or ()
    metadata = message.optional("metadata", fields) or Fields({})
    return Request(
        model=model,
        prompt=Conversation(turns=turns, tools=_tools(message), rendering=rendering),
        sampling=sampling_of(message, vocabulary_size),
        ending=ending_of(message, vocabulary_size, max_tokens=max_tokens, stop=stop),
        delivery=Delivery(stream=message.flag("stream")),
        cache_salt=cache_salt_of(message),
        affinity=metadata.optional("user_id", text),
    )


def _stop_sequences(value: Value) -> tuple[str, ...]:
    items(value)
    return stop_strings(value)


def _refuse_unsupported(message: Fields) -> None:
    output = message.optional("output_config", fields) or Fields({}, "output_config")
    for name, holder in (("output_format", message), ("format", output)):
        if holder.has(name):
            path = holder.path_of(name)
            raise Unsupported(f"{path} is not supported", field=path)
    if message.optional("mcp_servers", items):
        raise Unsupported("mcp_servers is not supported", field="mcp_servers")


def _template_kwargs(message: Fields, max_tokens: int | None) -> dict[str, object]:
    output = message.optional("output_config", fields) or Fields({}, "output_config")
    kwargs = template_kwargs(message, output.optional("effort", EFFORT))
    thinking = message.optional("thinking", fields)
    if thinking is not None:
        kwargs.setdefault("enable_thinking", thinking.required("type", choice(_THINKING)))
        _check_budget(thinking, max_tokens)
    return kwargs


def _check_budget(thinking: Fields, max_tokens: int | None) -> None:
    if thinking.values["type"] != "enabled":
        return
    budget = thinking.required("budget_tokens", integer(MIN_THINKING_TOKENS, MAX_COUNT))
    if max_tokens is not None and budget >= max_tokens:
        path = thinking.path_of("budget_tokens")
        raise InvalidRequest(f"{path} must be < max_tokens {max_tokens}, got {budget}", field=path)


def _tools(message: Fields) -> tuple[Tool, ...]:
    """Tools that the provider would run are left out: there is nothing here to run them."""
    values = message.optional("tools", items) or []
    tools = tuple(_tool(fields(value)) for value in values if not _runs_elsewhere(fields(value)))
    chosen = message.optional("tool_choice", fields) or Fields({"type": "auto"}, "tool_choice")
    mode = chosen.required("type", choice(_MODES))
    if mode is ToolMode.REQUIRED and not tools:
        raise InvalidRequest("tool_choice needs tools", field="tool_choice")
    check_callable(mode, tools)
    return tools


def _runs_elsewhere(tool: Fields) -> bool:
    return (tool.optional("type", text) or "").startswith(_SERVER_TOOLS)


def _tool(tool: Fields) -> Tool:
    kind = tool.optional("type", text) or "custom"
    if kind != "custom":
        path = tool.path_of("type")
        raise Unsupported(f"{path} must be custom, other types are not supported", field=path)
    return tool_of(tool, "input_schema")
