"""Calls whose arguments are plain text between markers; the tool's schema tells their types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.codec.output.calls import Calls
from services.codec.output.markers import Markers
from services.codec.output.named_call import MAX_NAME
from services.codec.output.scanner import Scanner, Steps

_LITERALS = {"True": "true", "False": "false", "None": "null"}
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterMarkers:
    """Markers around arguments; `ends` come after the last one."""

    begins: str
    name_ends: Markers
    value_begins: str
    value_ends: Markers
    ends: tuple[str, ...]


def parameters(scan: Scanner, calls: Calls, markers: ParameterMarkers) -> Steps[bool]:
    """Reads the arguments of a call that was begun; False where they are not as they should be."""
    opening = "{"
    while True:
        yield from scan.blanks()
        for end in markers.ends:
            if (yield from scan.reads(end)):
                calls.push("}" if opening == ", " else "{}")
                calls.end()
                return True
        name = yield from _name(scan, calls, markers)
        if name is None:
            return False
        calls.push(f"{opening}{json.dumps(name, ensure_ascii=False)}: ")
        opening = ", "
        types = _types(calls.schema, name)
        read = _string if types <= {"string"} else _typed
        if not (yield from read(scan, calls, markers.value_ends, types)):
            return False


def _name(scan: Scanner, calls: Calls, markers: ParameterMarkers) -> Steps[str | None]:
    """Reads an argument's name and the marker before its value."""
    if not (yield from scan.reads(markers.begins)):
        return None
    name, end = yield from scan.until(markers.name_ends, MAX_NAME)
    if end is None:
        return None
    if markers.value_begins:
        yield from scan.blanks()
        if not (yield from scan.reads(markers.value_begins)):
            return None
    return calls.spelled(name.strip())


def _string(scan: Scanner, calls: Calls, ends: Markers, _: frozenset[str]) -> Steps[bool]:
    """A value that is text: told as it comes, without one line end at either end."""
    calls.push('"')
    yield from scan.reads("\n")
    held = ""
    while True:
        text, end = yield from scan.run(ends)
        text = held + text
        if end is not None:
            calls.push(_escaped(calls, text.removesuffix("\n")) + '"')
            return True
        if scan.is_over:
            calls.push(_escaped(calls, text))
            return False
        held = "\n" if text.endswith("\n") else ""
        calls.push(_escaped(calls, text.removesuffix("\n")))


def _typed(scan: Scanner, calls: Calls, ends: Markers, types: frozenset[str]) -> Steps[bool]:
    """A value of another type: told when it is whole, as text where it is none of the type."""
    text = ""
    end: str | None = None
    while end is None:
        piece, end = yield from scan.run(ends)
        text += piece
        if end is None and scan.is_over:
            return False
    text = calls.spelled(text).removeprefix("\n").removesuffix("\n")
    value = _LITERALS.get(text.strip(), text.strip())
    calls.push(value if _is_of(value, types) else json.dumps(text, ensure_ascii=False))
    return True


def _escaped(calls: Calls, text: str) -> str:
    return json.dumps(calls.spelled(text), ensure_ascii=False)[1:-1]


def _is_of(text: str, types: frozenset[str]) -> bool:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    if value is None:
        return "null" in types
    kinds = {name for kind, name in _TYPES if isinstance(value, kind)}
    if "integer" in kinds:
        kinds.add("number")
    return not kinds.isdisjoint(types) and ("boolean" not in kinds or "boolean" in types)


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _types(schema: Mapping[str, Any], name: str) -> frozenset[str]:
    """The JSON types that a parameter may have; text where the schema does not tell."""
    properties = schema.get("properties")
    parameter = properties.get(name) if isinstance(properties, Mapping) else None
    return _types_of(parameter) or frozenset({"string"})


def _types_of(schema: Any) -> frozenset[str]:
    if not isinstance(schema, Mapping):
        return frozenset()
    told = schema.get("type")
    types = {told} if isinstance(told, str) else set(told) if isinstance(told, list) else set()
    for name in ("anyOf", "oneOf"):
        options = schema.get(name)
        if isinstance(options, list):
            for option in options:
                told = option.get("type") if isinstance(option, Mapping) else None
                types |= {told} if isinstance(told, str) else set()
    if not types and isinstance(schema.get("enum"), list):
        types = {"string", "null", *(name for _, name in _TYPES)}
    return frozenset(map(str, types))
