"""Tools of Chat Completions, and functions as there were before them."""

from __future__ import annotations

from typing import Any

from services.codec.conversation import Tool, ToolChoice, ToolMode
from services.codec.protocols.chat_completions.reply import FUNCTION_CALL
from services.codec.protocols.fields import Fields, Value, choice, fields, list_of
from services.codec.protocols.tool_choice import checked
from services.codec.protocols.tool_definitions import custom_tool_of, tool_name, tool_of
from services.shared.errors import InvalidRequest

_MODES = {"none": ToolMode.NONE, "auto": ToolMode.AUTO, "required": ToolMode.REQUIRED}
_OLD_MODES = {"none": ToolMode.NONE, "auto": ToolMode.AUTO}
_KINDS = choice({kind: kind for kind in ("function", "custom")})
_CHOICE_KINDS = choice({kind: kind for kind in ("function", "custom", "allowed_tools")})


def tools_of(chat: Fields) -> tuple[tuple[Tool, ...], ToolChoice]:
    """The tools, which stay part of the prompt though none may be called, and the choice."""
    if speaks_of_functions(chat):
        functions = tuple(chat.optional("functions", list_of(_function)) or ())
        chosen = chat.optional("function_call", _function_choice) or ToolChoice()
        single = ToolChoice(chosen.mode, chosen.names, parallel=False)
        return functions, checked(single, functions, given=True, field="function_call")
    tools = tuple(chat.optional("tools", list_of(_tool)) or ())
    chosen = chat.optional("tool_choice", _choice) or ToolChoice()
    parallel = chat.flag("parallel_tool_calls", default=True)
    chosen = ToolChoice(chosen.mode, chosen.names, parallel)
    return tools, checked(chosen, tools, given=chat.has("tools"), field="tool_choice")


def speaks_of_functions(chat: Fields) -> bool:
    return chat.has("functions") and not chat.has("tools")


def echo_of(chat: Fields) -> dict[str, Any]:
    return {FUNCTION_CALL: True} if speaks_of_functions(chat) else {}


def _tool(value: Value) -> Tool:
    tool = fields(value)
    if tool.required("type", _KINDS) == "custom":
        return custom_tool_of(tool.required("custom", fields))
    return tool_of(tool.required("function", fields), "parameters")


def _function(value: Value) -> Tool:
    return tool_of(fields(value), "parameters")


def _function_choice(value: Value) -> ToolChoice:
    if isinstance(value.json, dict):
        return ToolChoice(ToolMode.REQUIRED, (fields(value).required("name", tool_name),))
    return ToolChoice(choice(_OLD_MODES)(value))


def _choice(value: Value) -> ToolChoice:
    if not isinstance(value.json, dict):
        return ToolChoice(choice(_MODES)(value))
    chosen = fields(value)
    if chosen.required("type", _CHOICE_KINDS) != "allowed_tools":
        return ToolChoice(ToolMode.REQUIRED, (_named(value),))
    allowed = chosen.required("allowed_tools", fields)
    mode = allowed.required("mode", choice({k: _MODES[k] for k in ("auto", "required")}))
    names = tuple(allowed.required("tools", list_of(_named)))
    if not names:
        path = allowed.path_of("tools")
        raise InvalidRequest(f"{path} must not be empty", field=path)
    return ToolChoice(mode, names)


def _named(value: Value) -> str:
    tool = fields(value)
    return tool.required(tool.required("type", _KINDS), fields).required("name", tool_name)
