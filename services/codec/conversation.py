"""One conversation, whatever protocol it came in by: turns of parts, tools, and how to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """Who speaks. Closed: roles stand next to control tokens in templates."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought. `signature` is opaque and goes back as it came."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made. `arguments` is JSON text, byte for byte as it was given."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    parts: tuple[Text, ...]
    is_error: bool = False


Part = Text | Reasoning | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said. Parts keep their order."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None


class ToolKind(StrEnum):
    """How callers know a tool. A custom one takes a text, to the model its argument `input`."""

    FUNCTION = "function"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call. `schema` is a JSON schema, keys in the caller's order.

    With a `namespace` the name begins with it and two underscores.
    """

    name: str
    description: str | None
    schema: Mapping[str, Any]
    strict: bool = False
    kind: ToolKind = ToolKind.FUNCTION
    namespace: str | None = None


class ToolMode(StrEnum):
    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools may be called. `names` narrows them; empty means all."""

    mode: ToolMode = ToolMode.AUTO
    names: tuple[str, ...] = ()
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class Rendering:
    """How the template is applied. With `continue_final` the last turn stays open."""

    continue_final: bool = False
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The input of a chat template: everything that decides the prompt's token IDs."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    rendering: Rendering = Rendering()
