"""Bounds of a constraint, checked before it is compiled: some take time in the square of a size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from services.shared.errors import InvalidRequest
from services.shared.stream.generation import Constraint, ConstraintKind

MAX_SCHEMA_BYTES = 256 * 2**10
MAX_NOTATION_BYTES = 16 * 2**10
"""Of a regular expression or a grammar; also of all patterns of a schema together."""

MAX_DEPTH = 64
MAX_NODES = 10_000
MAX_PROPERTIES = 1000
MAX_PATTERN_PROPERTIES = 32

Entry = tuple[str, Any, int]


def check_size(constraint: Constraint) -> None:
    """Raises InvalidRequest naming what there is too much of."""
    if constraint.kind is ConstraintKind.JSON_SCHEMA:
        at_most("bytes", len(constraint.source), MAX_SCHEMA_BYTES)
        _check_schema(constraint.source)
    else:
        at_most("bytes", len(constraint.source), MAX_NOTATION_BYTES)


def at_most(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise InvalidRequest(
            f"constraint must have at most {limit} {what}, got {count}", field="constraint"
        )


def _check_schema(source: str) -> None:
    try:
        schema = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"constraint must be a JSON schema: {error}", field="constraint"
        ) from error
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
