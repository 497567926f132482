"""Bounds of a constraint: some take time in the square of a size, others much memory."""

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

AUTOMATON_BYTES = 48 * 2**20
"""Of the states that a grammar's lexer comes to have while outputs go through it."""

MAX_STATES = 20_000
STATE_BYTES = 1300
CHARACTER_BYTES = 12
"""Of a state for each character of patterns: what each has left to match is kept with it."""

REPEATING_CHARACTERS = 8
"""A line or a sign of repetition outside of patterns counts as so many characters of one."""

Entry = tuple[str, Any, int]


# What a grammar in Lark syntax is made of; JSON schemas stand in it after %json. What does not end
# is for the compiler to tell: it is not read again from each quote inside.
_LEXEME = re.compile(
    r'"(?:\\.|[^"\\\n])*"?|/(?:\\.|[^/\\\n])+/?|//[^\n]*|#[^\n]*|(?P<schema>%json\s*)'
)


_CHOICES = frozenset({"anyOf", "oneOf", "allOf", "patternProperties", "$ref"})
_REPEATING = re.compile(r"[\n{*+~&]")


def states_within(constraint: Constraint) -> int:
    """States that its lexer may have, such that they take `AUTOMATON_BYTES` at most.

    Raises:
        InvalidRequest: naming what there is too much of.
    """
    state_bytes = STATE_BYTES + CHARACTER_BYTES * _patterns(constraint)
    return min(MAX_STATES, AUTOMATON_BYTES // state_bytes)


def _patterns(constraint: Constraint) -> int:
    """Characters of its patterns; raises InvalidRequest as above."""
    source = constraint.source
    if constraint.kind is ConstraintKind.REGEX:
        at_most("bytes", len(source), MAX_NOTATION_BYTES)
        return len(source)
    at_most("bytes", len(source), MAX_SCHEMA_BYTES)
    if constraint.kind is ConstraintKind.JSON_SCHEMA:
        return _patterns_of_schema(_schema_at(source.lstrip(), 0)[0])
    return _patterns_of_grammar(source)


def at_most(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise InvalidRequest(
            f"constraint must have at most {limit} {what}, got {count}", field="constraint"
        )


def _patterns_of_grammar(source: str) -> int:
    """Counts the schemas of a grammar together, and the rest of it as notation."""
    schemas, begun, end, rest, patterns = [], 0, 0, len(source), 0
    while found := _LEXEME.search(source, end):
        patterns += REPEATING_CHARACTERS * len(_REPEATING.findall(source, begun, found.start()))
        end = found.end()
        if found["schema"] is not None:
            schema, after = _schema_at(source, end)
            schemas.append(schema)
            rest -= after - end
            end = after
        elif found[0][0] == "/" != found[0][1:2]:
            patterns += end - found.start()
        begun = end
    patterns += REPEATING_CHARACTERS * len(_REPEATING.findall(source, begun))
    at_most("bytes beside schemas", rest, MAX_NOTATION_BYTES)
    return patterns + _patterns_of_schema(schemas, are_choices=len(schemas) > 1)


def _schema_at(source: str, start: int) -> tuple[Any, int]:
    """A schema of the source, and where it ends."""
    try:
        return json.JSONDecoder().raw_decode(source, start)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"constraint must be a JSON schema: {error}", field="constraint"
        ) from error


def _patterns_of_schema(schema: Any, *, are_choices: bool = False) -> int:
    """Characters of all patterns, or of the longest where no two can be in question at once."""
    patterns = longest = 0
    for nodes, (key, value, depth) in enumerate(_entries(schema), start=1):
        at_most("values", nodes, MAX_NODES)
        at_most("levels", depth, MAX_DEPTH)
        are_choices = are_choices or key in _CHOICES
        if key == "pattern" and isinstance(value, str):
            patterns += len(value)
            longest = max(longest, len(value))
        if isinstance(value, dict):
            at_most(f"entries in {key or 'one object'}", len(value), _limit(key))
            patterns += sum(map(len, value)) if key == "patternProperties" else 0
        at_most("characters in patterns", patterns, MAX_NOTATION_BYTES)
    return patterns if are_choices else longest


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
