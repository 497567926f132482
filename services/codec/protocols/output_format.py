"""What the visible text must be: formats of the protocols and of other servers."""

from __future__ import annotations

import re

from services.codec.protocols.fields import (
    Fields,
    Reader,
    Value,
    choice,
    fields,
    filled_text,
    flag,
    list_of,
    text,
)
from services.codec.protocols.json_body import object_of
from services.codec.protocols.schema import schema
from services.codec.request import Grammar, JsonObject, JsonSchema, OutputFormat, Regex
from services.shared.errors import InvalidRequest

MAX_CHOICES = 1000

_KIND = choice({name: name for name in ("text", "json_object", "json_schema")})
_SPECIAL = re.compile(r"[\\.^$|?*+()\[\]{}]")


def chat_format(value: Value) -> OutputFormat | None:
    """`response_format`: its schema has a holder of its own."""
    body = fields(value)
    match body.required("type", _KIND):
        case "json_schema":
            holder = body.required("json_schema", fields)
            holder.required("name", filled_text)
            return _schema_of(holder)
        case "json_object":
            return JsonObject()
        case _:
            return None


def flat_format(value: Value) -> OutputFormat | None:
    """`text.format` of Responses and `format` of Messages: the schema stands beside the type."""
    body = fields(value)
    match body.required("type", _KIND):
        case "json_schema":
            return _schema_of(body)
        case "json_object":
            return JsonObject()
        case _:
            return None


def extended_format(body: Fields) -> OutputFormat | None:
    """`guided_*` and `structured_outputs`, of which one may be given."""
    inner = body.optional("structured_outputs", fields) or Fields({}, "structured_outputs")
    given = [
        (holder, name, reader)
        for holder, names in ((body, _GUIDED), (inner, _STRUCTURED))
        for name, reader in names.items()
        if holder.has(name)
    ]
    if len(given) > 1:
        path = given[1][0].path_of(given[1][1])
        raise InvalidRequest(f"{path} must not be given with another format", field=path)
    return next((reader(holder.value(name)) for holder, name, reader in given), None)


def _schema_of(holder: Fields) -> JsonSchema:
    return JsonSchema(holder.required("schema", schema))


def _json(value: Value) -> JsonSchema:
    """A schema, or its text."""
    if not isinstance(value.json, str):
        return JsonSchema(schema(value))
    try:
        parsed = object_of(text(value).encode()).values
    except InvalidRequest:
        raise value.invalid("a JSON schema") from None
    return JsonSchema(schema(Value(parsed, value.path)))


def _regex(value: Value) -> Regex:
    return Regex(filled_text(value))


def _grammar(value: Value) -> Grammar:
    return Grammar(filled_text(value))


def _choice(value: Value) -> Regex:
    choices = list_of(filled_text, at_least=1, at_most=MAX_CHOICES)(value)
    return Regex("|".join(_SPECIAL.sub(r"\\\g<0>", string) for string in choices))


def _json_object(value: Value) -> JsonObject | None:
    return JsonObject() if flag(value) else None


_GUIDED: dict[str, Reader[OutputFormat | None]] = {
    "guided_json": _json,
    "guided_regex": _regex,
    "guided_grammar": _grammar,
    "guided_choice": _choice,
}
_STRUCTURED: dict[str, Reader[OutputFormat | None]] = {
    "json": _json,
    "regex": _regex,
    "grammar": _grammar,
    "choice": _choice,
    "json_object": _json_object,
}
