"""Tools of Messages."""

from __future__ import annotations

from dataclasses import dataclass

from services.codec.conversation import Tool, ToolChoice, ToolMode
from services.codec.protocols.fields import Fields, Value, choice, fields, list_of, text
from services.codec.protocols.tool_choice import checked
from services.codec.protocols.tool_definitions import tool_name, tool_of
from services.shared.errors import Unsupported

_MODES = choice(
    {
        "none": ToolMode.NONE,
        "auto": ToolMode.AUTO,
        "any": ToolMode.REQUIRED,
        "tool": ToolMode.REQUIRED,
    }
)
_SERVER_TOOLS = (
    "web_search_",
    "web_fetch_",
    "code_execution_",
    "tool_search_tool_",
    "mcp_toolset",
    "advisor_",
)


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools that may be called, the choice, and kinds of tools that the provider would run."""

    tools: tuple[Tool, ...]
    choice: ToolChoice
    ignored: tuple[str, ...]


def tools_of(message: Fields) -> Tools:
    found = message.optional("tools", list_of(fields)) or []
    ignored = tuple(kind for tool in found if _runs_elsewhere(kind := _kind(tool)))
    tools = tuple(_tool(tool) for tool in found if not _runs_elsewhere(_kind(tool)))
    chosen = message.optional("tool_choice", _choice) or ToolChoice()
    return Tools(tools, checked(chosen, tools, given=bool(ignored), field="tool_choice"), ignored)


def _kind(tool: Fields) -> str:
    return tool.optional("type", text) or "custom"


def _runs_elsewhere(kind: str) -> bool:
    return kind.startswith(_SERVER_TOOLS)


def _tool(tool: Fields) -> Tool:
    if _kind(tool) != "custom":
        path = tool.path_of("type")
        raise Unsupported(f"{path} must be custom, other types are not supported", field=path)
    return tool_of(tool, "input_schema")


def _choice(value: Value) -> ToolChoice:
    chosen = fields(value)
    mode = chosen.required("type", _MODES)
    is_named = chosen.values["type"] == "tool"
    names = (chosen.required("name", tool_name),) if is_named else ()
    return ToolChoice(mode, names, parallel=not chosen.flag("disable_parallel_tool_use"))
