"""Thirty JSON schemas with what people write in them, small enough for a small model."""

from __future__ import annotations

from typing import Any


def obj(*, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def array(items: Any, **bounds: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **({"minItems": 1, "maxItems": 3} | bounds)}


WORD = {"type": "string", "maxLength": 8}
COLOUR = {"enum": ["red", "green", "blue"]}
SMALL = {"type": "integer", "minimum": -20, "maximum": 300}
NODE = obj(required=["value"], value=SMALL, next={"$ref": "#/$defs/last"})

SCHEMAS: list[dict[str, Any]] = [
    {"type": "boolean"},
    {"type": "null"},
    SMALL,
    {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5},
    {"type": "integer", "minimum": 0, "maximum": 1000, "multipleOf": 25},
    {"type": "number", "minimum": 0, "maximum": 10, "multipleOf": 0.25},
    WORD,
    {"type": "string", "minLength": 5, "maxLength": 5},
    {"type": "string", "pattern": "^[a-z]{3}-[0-9]{2}$"},
    {"type": "string", "pattern": "x", "maxLength": 12},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
    COLOUR,
    {"enum": [1, "one", None, [1], {"one": 1}]},
    {"const": {"kind": "fixed", "list": [1, 2.5, True]}},
    array(COLOUR),
    array(SMALL, minItems=4, maxItems=4),
    array(array({"type": "boolean"})),
    {"type": "array", "prefixItems": [COLOUR, SMALL], "items": False, "minItems": 2},
    obj(name=WORD, colour=COLOUR),
    obj(required=["name"], name=WORD, colour=COLOUR, size=SMALL),
    obj(point=obj(x=SMALL, y=SMALL), label={"type": ["string", "null"], "maxLength": 6}),
    obj(items=array(obj(id=SMALL, done={"type": "boolean"}))),
    {"type": "object", "additionalProperties": SMALL, "maxProperties": 2},
    {"type": "object", "patternProperties": {"^k[0-9]$": COLOUR}, "additionalProperties": False,
     "maxProperties": 2},
    {"anyOf": [obj(cat=WORD), obj(dog=SMALL)]},
    {"oneOf": [obj(kind={"const": "a"}, a=SMALL), obj(kind={"const": "b"}, b=COLOUR)]},
    {"allOf": [{"type": "integer", "minimum": 10}, {"maximum": 20}]},
    {**NODE, "$defs": {"last": obj(value=SMALL)}},
]  # fmt: skip
