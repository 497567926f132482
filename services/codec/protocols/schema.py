"""JSON schemas that an output must follow: all that they demand, a grammar can express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.codec.protocols.fields import Value, free_object
from services.shared.errors import Unsupported

# Of the vocabulary of JSON Schema, what the grammars of the engine cannot tell.
UNSUPPORTED = frozenset(
    {
        *("not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems"),
        *("dependencies", "dependentRequired", "dependentSchemas", "propertyNames"),
        *("unevaluatedItems", "unevaluatedProperties"),
        *("$dynamicRef", "$dynamicAnchor", "$recursiveRef"),
    }
)
FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6"),
        *("uuid", "uri", "unknown"),
    }
)

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_INNER = frozenset({"items", "prefixItems", "additionalProperties", "additionalItems"})
_INNER |= {"anyOf", "oneOf", "allOf"}

MAX_SHOWN_KEY = 64


def schema(value: Value) -> Mapping[str, Any]:
    """Raises Unsupported with the path of the keyword that no grammar can express."""
    whole = free_object(value)
    pending = [Value(whole, value.path)]
    while pending:
        part = pending.pop()
        if isinstance(part.json, dict):
            _check(part.json, part.path)
            pending += _inner(part.json, part.path)
        elif isinstance(part.json, list):
            pending += [Value(item, f"{part.path}[{at}]") for at, item in enumerate(part.json)]
    return whole


def _check(part: Mapping[str, Any], path: str) -> None:
    for keyword in part.keys() & UNSUPPORTED:
        raise Unsupported(
            f"{path}.{keyword} is not supported: outputs cannot be made to follow it",
            field=f"{path}.{keyword}",
        )
    wanted = part.get("format")
    if isinstance(wanted, str) and wanted not in FORMATS and _may_be_text(part.get("type")):
        shown = Value(wanted, f"{path}.format").shown()
        raise Unsupported(
            f"{path}.format must be one of {', '.join(sorted(FORMATS))}, got {shown}",
            field=f"{path}.format",
        )


def _may_be_text(kind: Any) -> bool:
    return kind is None or kind == "string" or (isinstance(kind, list) and "string" in kind)


def _inner(part: Mapping[str, Any], path: str) -> Iterator[Value]:
    """The schemas in a schema; what stands beside them are values and names."""
    for keyword, value in part.items():
        if keyword in _INNER:
            yield Value(value, f"{path}.{keyword}")
        elif keyword in _NAMED and isinstance(value, dict):
            for name, named in value.items():
                yield Value(named, f"{path}.{keyword}.{_shown(name)}")


def _shown(name: str) -> str:
    return name if name.isprintable() and len(name) <= MAX_SHOWN_KEY else "*"
