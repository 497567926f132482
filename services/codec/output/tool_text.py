"""Tools as text, for models whose chat template does not know any."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from services.codec.conversation import Tool, ToolCall
from services.codec.output.family import ToolText


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _definition(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    return {"type": "function", "function": function | {"parameters": tool.schema}}


def _call(call: ToolCall) -> str:
    # The arguments stay byte for byte as the model wrote them.
    return f'{{"name": {_json(call.name)}, "arguments": {call.arguments or "{}"}}}'


def _list_system(tools: Sequence[Tool]) -> str:
    return (
        "You can call functions to do what the user asks for. These are the functions:\n"
        f"<tools>{_json([_definition(tool) for tool in tools])}</tools>\n\n"
        "To call functions, answer with nothing but a JSON list of calls in this form:\n"
        '<tool_call>[{"name": "a function\'s name", "arguments": {"argument": "value"}}]'
        "</tool_call>\n"
        "Call no function that is not listed. Where no call is of use, answer in words."
    )


def _list_calls(calls: Sequence[ToolCall]) -> str:
    return f"<tool_call>[{', '.join(map(_call, calls))}]</tool_call>"


def _tagged_system(tools: Sequence[Tool]) -> str:
    listed = "\n".join(_json(_definition(tool)) for tool in tools)
    return (
        "You can call functions to do what the user asks for. These are the functions:\n"
        f"<tools>\n{listed}\n</tools>\n\n"
        "For each call write a JSON object in this form:\n"
        '<tool_call>\n{"name": "a function\'s name", "arguments": {"argument": "value"}}\n'
        "</tool_call>"
    )


def _tagged_calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"<tool_call>\n{_call(call)}\n</tool_call>" for call in calls)


def _result(text: str) -> str:
    return f"<tool_response>{text}</tool_response>"


JSON_LIST = ToolText(system=_list_system, calls=_list_calls, result=_result)
TAGGED_OBJECT = ToolText(system=_tagged_system, calls=_tagged_calls, result=_result)
