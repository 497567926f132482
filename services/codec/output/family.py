"""How a family of models writes what is no plain text, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from services.codec.conversation import Tool, ToolCall


class Syntax(Enum):
    """How one call is written.

    OBJECT: a JSON object of name and arguments, or a list of such objects.
    NAMED: a name, then the arguments as a JSON object.
    PARAMETERS: a name, then each argument's text between markers.
    FIELDS: a name, then the arguments in braces with strings between markers of their own.
    """

    OBJECT = auto()
    NAMED = auto()
    PARAMETERS = auto()
    FIELDS = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """How a call names its tool: `pattern` has the name as its group, `ends` come after it.

    `within` are markers that the pattern mentions. With `is_open` what ends the name is part of
    what follows.
    """

    pattern: str
    ends: tuple[str, ...]
    within: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Markers around an argument: before its name, after it, before its value, after it."""

    begins: str
    name_ends: str
    value_begins: str
    value_ends: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallForm:
    """Where calls stand and how they are written.

    Args:
        opens: markers before calls.
        closes: markers after them.
        begins: markers before each of several calls.
        ends: markers after each call.
        is_bare: an output that begins with a JSON object or list may be a call.
        string_mark: stands around strings, where they have no quotes.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    syntax: Syntax = Syntax.OBJECT
    head: Head | None = None
    parameters: Parameters | None = None
    is_bare: bool = False
    string_mark: str = ""

    def markers(self) -> tuple[str, ...]:
        markers = (*self.opens, *self.closes, *self.begins, *self.ends, self.string_mark)
        if self.head is not None:
            markers += (*self.head.ends, *self.head.within)
        if self.parameters is not None:
            parameters = self.parameters
            markers += (parameters.begins, parameters.name_ends)
            markers += (parameters.value_begins, parameters.value_ends)
        return tuple(filter(None, markers))


@dataclass(frozen=True, kw_only=True, slots=True)
class Channels:
    """Messages with headers: where headers begin, where they end, and what ends a message.

    A header whose `channel` is one of `thinking` heads reasoning; one with a `recipient`, a call.
    `within` are other markers in headers.
    """

    begins: tuple[str, ...]
    message: str
    ends: tuple[str, ...]
    channel: str
    thinking: tuple[str, ...]
    recipient: str
    within: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolText:
    """What the codec writes for templates that know no tools.

    Args:
        system: tells the model of its tools; it takes them with descriptions and schemas.
        calls: the calls of an earlier answer as the model would write them.
        result: what a tool gave, as the text of a user.
    """

    system: Callable[[Sequence[Tool]], str]
    calls: Callable[[Sequence[ToolCall]], str]
    result: Callable[[str], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallText:
    """A call as literal text around name and JSON arguments, for grammars.

    The output is: opens, then calls of (before, name, between, arguments, after) with `joins`
    between them, then closes.
    """

    opens: str
    before: str
    between: str
    after: str
    joins: str
    closes: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One family of models.

    Args:
        thinking: the markers around reasoning.
        calls: how tools are called; None where calls are not read.
        channels: messages with headers instead of markers around reasoning.
        tool_text: for templates that know no tools.
        call_text: how a call reads whose arguments are JSON.
        call_id: makes the ID of an earlier call from the tool's name and the call's number, where
            the template wants a certain shape.
    """

    name: str
    thinking: tuple[str, str] | None = None
    calls: CallForm | None = None
    channels: Channels | None = None
    tool_text: ToolText | None = None
    call_text: CallText | None = None
    call_id: Callable[[str, int], str] | None = None

    def markers(self) -> tuple[str, ...]:
        """Every marker that the family knows."""
        markers: tuple[str, ...] = self.thinking or ()
        if self.calls is not None:
            markers += self.calls.markers()
        if self.channels is not None:
            channels = self.channels
            markers += (*channels.begins, channels.message, *channels.ends, *channels.within)
        return markers
