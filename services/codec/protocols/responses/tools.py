"""Tools of Responses: flat definitions, namespaces, and kinds that only their provider can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from services.codec.conversation import Tool, ToolChoice, ToolMode
from services.codec.protocols.fields import Fields, Value, choice, fields, list_of, text
from services.codec.protocols.tool_choice import checked
from services.codec.protocols.tool_definitions import custom_tool_of, tool_name, tool_of

_MODES = {"none": ToolMode.NONE, "auto": ToolMode.AUTO, "required": ToolMode.REQUIRED}
_RUN_BY_CALLERS = frozenset({"function", "custom"})


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools that may be called, the choice, and kinds of tools that the provider would run."""

    tools: tuple[Tool, ...]
    choice: ToolChoice
    ignored: tuple[str, ...]


def tools_of(body: Fields, additional: list[Value]) -> Tools:
    """`additional` are definitions that stand among the input."""
    definitions = [*(body.optional("tools", list_of(fields)) or []), *map(fields, additional)]
    tools = tuple(tool for definition in definitions for tool in _tools(definition))
    ignored = tuple(kind for definition in definitions if (kind := _foreign(definition)))
    chosen = body.optional("tool_choice", _choice) or ToolChoice()
    parallel = body.flag("parallel_tool_calls", default=True)
    chosen = ToolChoice(chosen.mode, chosen.names, parallel)
    return Tools(tools, checked(chosen, tools, given=bool(ignored), field="tool_choice"), ignored)


def full_name(holder: Fields) -> str:
    """The name of a tool as the model knows it."""
    name = holder.required("name", tool_name)
    namespace = holder.optional("namespace", tool_name)
    return name if namespace is None else f"{namespace}__{name}"


def _tools(definition: Fields) -> Iterator[Tool]:
    match definition.required("type", text):
        case "function":
            yield tool_of(definition, "parameters")
        case "custom":
            yield custom_tool_of(definition)
        case "namespace":
            namespace = definition.required("name", tool_name)
            for inner in definition.required("tools", list_of(fields)):
                if _foreign(inner) is None:
                    for tool in _tools(inner):
                        yield replace(tool, name=f"{namespace}__{tool.name}", namespace=namespace)
        case _:
            return


def _foreign(definition: Fields) -> str | None:
    kind = definition.required("type", text)
    return None if kind in _RUN_BY_CALLERS or kind == "namespace" else kind


def _choice(value: Value) -> ToolChoice:
    """To choose a tool that is not here is to choose nothing."""
    if not isinstance(value.json, dict):
        return ToolChoice(choice(_MODES)(value))
    chosen = fields(value)
    kind = chosen.required("type", text)
    if kind in _RUN_BY_CALLERS:
        return ToolChoice(ToolMode.REQUIRED, (full_name(chosen),))
    if kind != "allowed_tools":
        return ToolChoice()
    allowed = chosen.required("tools", list_of(fields))
    names = tuple(full_name(tool) for tool in allowed if _foreign(tool) is None)
    mode = chosen.required("mode", choice({name: _MODES[name] for name in ("auto", "required")}))
    return ToolChoice(mode, names) if names else ToolChoice(ToolMode.NONE)
