"""What both protocols say of a tool: its name and its schema."""

from __future__ import annotations

from services.codec.conversation import Tool, ToolMode
from services.codec.protocols.fields import Fields, Value, filled_text, free_object, text
from services.shared.errors import Unsupported

MAX_NAME_CHARACTERS = 128
FORBIDDEN = frozenset("\"'`\\<>{}[]|")


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
    schema = dict(definition.optional(schema_name, free_object) or {})
    schema.setdefault("type", "object")
    if schema["type"] == "object":
        schema.setdefault("properties", {})
    return Tool(
        name=definition.required("name", tool_name),
        description=definition.optional("description", text),
        schema=schema,
        strict=definition.flag("strict"),
    )


def check_callable(mode: ToolMode, tools: tuple[Tool, ...]) -> None:
    """Refuses what would need calls to be read from the output."""
    if tools and mode is not ToolMode.NONE:
        raise Unsupported(
            "tools are not supported yet: leave tools out, or set tool_choice to none",
            field="tools",
        )
