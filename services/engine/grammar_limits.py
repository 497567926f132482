"""Bounds of a constraint, checked before it is compiled: some take time in the square of a size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from services.shared.errors import InvalidRequest
from services.shared.stream.generation import Constraint, ConstraintKind

MAX_SCHEMA_BYTES = 256 * 2**10
MAX_NOTATION_BYTES = 16 * 2**10
"""Of a regular expression, of a grammar beside its schemas, of all patterns of schemas."""

MAX_DEPTH = 64
MAX_NODES = 10_000
MAX_PROPERTIES = 500
MAX_PATTERN_PROPERTIES = 32

Entry = tuple[str, Any, int]


# What a grammar in Lark syntax is made of; JSON schemas stand in it after %json. What does not end
# is for the compiler to tell: it is not read again from each quote inside.
_LEXEME = re.compile(
    r'"(?:\\.|[^"\\\n])*"?|/(?:\\.|[^/\\\n])+/?|//[^\n]*|#[^\n]*|(?P<schema>%json\s*)'
)


def check_size(constraint: Constraint) -> None:
    """Raises InvalidRequest naming what there is too much of."""
    source = constraint.source
    if constraint.kind is ConstraintKind.REGEX:
        at_most("bytes", len(source), MAX_NOTATION_BYTES)
        return
    at_most("bytes", len(source), MAX_SCHEMA_BYTES)
    if constraint.kind is ConstraintKind.JSON_SCHEMA:
        _check_schema(_schema_at(source.lstrip(), 0)[0])
    else:
        _check_grammar(source)


def at_most(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise InvalidRequest(
            f"constraint must have at most {limit} {what}, got {count}", field="constraint"
        )


def _check_grammar(source: str) -> None:
    """Counts the schemas of a grammar together, and the rest of it as notation."""
    schemas, end, rest = [], 0, len(source)
    while found := _LEXEME.search(source, end):
        end = found.end()
        if found["schema"] is not None:
            schema, after = _schema_at(source, end)
            schemas.append(schema)
            rest -= after - end
            end = after
    at_most("bytes beside schemas", rest, MAX_NOTATION_BYTES)
    _check_schema(schemas)


def _schema_at(source: str, start: int) -> tuple[Any, int]:
    """A schema of the source, and where it ends."""
    try:
        return json.JSONDecoder().raw_decode(source, start)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"constraint must be a JSON schema: {error}", field="constraint"
        ) from error


def _check_schema(schema: Any) -> None:
    patterns = 0
    for nodes, (key, value, depth) in enumerate(_entries(schema), start=1):
        at_most("values", nodes, MAX_NODES)
        at_most("levels", depth, MAX_DEPTH)
        if key == "pattern" and isinstance(value, str):
            patterns += len(value)
        if isinstance(value, dict):
            at_most(f"entries in {key or 'one object'}", len(value), _limit(key))
            patterns += sum(map(len, value)) if key == "patternProperties" else 0
        at_most("characters in patterns", patterns, MAX_NOTATION_BYTES)


def _limit(key: str) -> int:
    return MAX_PATTERN_PROPERTIES if key == "patternProperties" else MAX_PROPERTIES


def _entries(schema: Any) -> Iterator[Entry]:
    """Every value of the schema with its key and its depth."""
    pending: list[Entry] = [("", schema, 1)]
    while pending:
        entry = pending.pop()
        yield entry
        _, value, depth = entry
        if isinstance(value, dict):
            pending += ((key, child, depth + 1) for key, child in value.items())
        elif isinstance(value, list):
            pending += (("", child, depth + 1) for child in value)
