"""What all protocols say of a tool: its name and what it takes."""

from __future__ import annotations

from services.codec.conversation import Tool, ToolKind
from services.codec.protocols.fields import (
    Fields,
    Value,
    choice,
    fields,
    filled_text,
    free_object,
    text,
)
from services.codec.protocols.schema import schema as followed

MAX_NAME_CHARACTERS = 128
FORBIDDEN = frozenset("\"'`\\<>{}[]|")

_FORMATS = choice({"text": "text", "grammar": "grammar"})
_CUSTOM_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def tool_name(value: Value) -> str:
    """A name that can stand in a prompt: printable, without spaces, quotes and brackets."""
    name = filled_text(value)
    unfit = any(char.isspace() or not char.isprintable() or char in FORBIDDEN for char in name)
    if unfit or len(name) > MAX_NAME_CHARACTERS:
        raise value.invalid(
            f"at most {MAX_NAME_CHARACTERS} printable characters without spaces, quotes or brackets"
        )
    return name


def tool_of(definition: Fields, schema_name: str) -> Tool:
    """A function; `schema_name` is how the protocol names its schema. No schema takes nothing."""
    strict = definition.flag("strict")
    schema = dict(definition.optional(schema_name, followed if strict else free_object) or {})
    schema.setdefault("type", "object")
    if schema["type"] == "object":
        schema.setdefault("properties", {})
    return Tool(
        name=definition.required("name", tool_name),
        description=definition.optional("description", text),
        schema=schema,
        strict=strict,
    )


def custom_tool_of(definition: Fields) -> Tool:
    """A tool that takes a text. A grammar for it is told to the model, not forced upon it."""
    description = definition.optional("description", text)
    form = definition.optional("format", fields)
    if form is not None and form.required("type", _FORMATS) == "grammar":
        # Chat Completions nests it, Responses does not.
        grammar = form.optional("grammar", fields) or form
        source = grammar.required("definition", text)
        description = f"{description or ''}\nThe input follows this grammar:\n{source}".lstrip()
    return Tool(
        name=definition.required("name", tool_name),
        description=description,
        schema=_CUSTOM_SCHEMA,
        kind=ToolKind.CUSTOM,
    )
