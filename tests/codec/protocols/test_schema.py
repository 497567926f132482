"""Schemas are refused at request time, by the path of the keyword."""

from __future__ import annotations

from typing import Any

import pytest

from services.codec.protocols.fields import Fields, Value
from services.codec.protocols.output_format import chat_format
from services.codec.protocols.schema import schema
from services.codec.protocols.tool_definitions import tool_of
from services.shared.errors import Unsupported

NOT = {"not": {"type": "string"}}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (NOT, "s.not"),
        (
            {"properties": {"a": {"items": {"uniqueItems": True}}}},
            "s.properties.a.items.uniqueItems",
        ),
        ({"anyOf": [{}, {"if": {}}]}, "s.anyOf[1].if"),
        ({"prefixItems": [{}, NOT]}, "s.prefixItems[1].not"),
        ({"additionalProperties": NOT}, "s.additionalProperties.not"),
        ({"$defs": {"x": NOT}, "$ref": "#/$defs/x"}, "s.$defs.x.not"),
        ({"type": "string", "format": "iri"}, "s.format"),
        ({"format": "regex"}, "s.format"),
        ({"properties": {"\n": NOT}}, "s.properties.*.not"),
    ],
)
def test_what_no_grammar_can_express_is_named_with_its_path(
    value: dict[str, Any], path: str
) -> None:
    with pytest.raises(Unsupported) as refusal:
        schema(Value(value, "s"))
    assert refusal.value.field == path
    assert path in refusal.value.message


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"properties": {"not": {}, "if": {"type": "string"}}, "required": ["not"]},
        {"enum": [{"not": 1}], "const": {"if": 1}, "default": {"then": 1}, "examples": [NOT]},
        {"type": "integer", "format": "int32"},
        {"type": ["string", "null"], "format": "date"},
        {"additionalProperties": False, "items": True},
    ],
)
def test_names_values_and_annotations_are_no_keywords(value: dict[str, Any]) -> None:
    assert schema(Value(value, "s")) == value


def test_a_format_tells_the_callers_own_path() -> None:
    body = {"type": "json_schema", "json_schema": {"name": "n", "schema": NOT}}
    with pytest.raises(Unsupported) as refusal:
        chat_format(Value(body, "response_format"))
    assert refusal.value.field == "response_format.json_schema.schema.not"


def test_only_strict_tools_must_be_followed() -> None:
    definition = {"name": "f", "parameters": NOT}
    assert tool_of(Fields(definition, "tools[0]"), "parameters").schema["not"] == NOT["not"]
    with pytest.raises(Unsupported, match=r"parameters\.not"):
        tool_of(Fields(definition | {"strict": True}, "tools[0]"), "parameters")
