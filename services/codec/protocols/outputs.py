"""A complete answer, event by event, as the items that each output consists of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from services.codec.events import (
    EndReason,
    Error,
    Finish,
    Heartbeat,
    OutputEvent,
    ReasoningDelta,
    ReleasedToken,
    Start,
    TextDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
    Usage,
)
from services.codec.output.json_prefix import JsonPrefix


@dataclass(slots=True)
class Said:
    """Visible text between other items, and the tokens that it was released with."""

    text: str = ""
    tokens: list[ReleasedToken] = field(default_factory=list)


@dataclass(slots=True)
class Thought:
    text: str = ""


@dataclass(slots=True)
class Called:
    """A call. `sent` is what streams told of its arguments, `arguments` what the model wrote."""

    call_id: str
    name: str
    sent: str = ""
    arguments: str = ""
    valid: bool = False

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as an object; broken ones as far as they go."""
        try:
            value = json.loads(object_text(self))
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


def object_text(call: Called) -> str:
    """Arguments as the text of a JSON object, of which what was sent is the beginning."""
    if call.valid:
        return call.arguments or "{}"
    if not call.sent.strip():
        return "{}"
    prefix = JsonPrefix()
    prefix.push(call.sent)
    return call.sent + prefix.closing()


Item = Said | Thought | Called


@dataclass(slots=True)
class Output:
    """One choice. `text_tokens` are those of its visible text, `tokens` all of them."""

    items: list[Item] = field(default_factory=list)
    tokens: list[ReleasedToken] = field(default_factory=list)
    text_tokens: list[ReleasedToken] = field(default_factory=list)
    finish: Finish = field(default_factory=lambda: Finish(reason=EndReason.END_OF_TEXT))

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, Said))

    @property
    def reasoning(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, Thought))

    @property
    def calls(self) -> list[Called]:
        return [item for item in self.items if isinstance(item, Called)]

    def take(self, event: OutputEvent) -> None:
        match event:
            case TextDelta():
                self.text_tokens += event.tokens
                self._write(event, Said)
            case ReasoningDelta():
                self._write(event, Thought)
            case ToolStart():
                self.items.append(Called(event.call_id, event.name))
            case ToolArguments():
                self._call.sent += event.fragment
                self._call.arguments = self._call.sent
            case ToolEnd():
                self._call.arguments, self._call.valid = event.arguments, event.valid
            case Finish():
                self.finish = event
            case Start() | Usage() | Error() | Heartbeat():
                pass

    @property
    def _call(self) -> Called:
        return self.calls[-1]

    def _write(self, event: TextDelta | ReasoningDelta, kind: type[Said | Thought]) -> None:
        self.tokens += event.tokens
        if not event.text:
            return
        if not self.items or not isinstance(self.items[-1], kind):
            self.items.append(kind())
        last = self.items[-1]
        assert not isinstance(last, Called)  # noqa: S101 it was just made sure of
        last.text += event.text
        if isinstance(last, Said):
            last.tokens += event.tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """An answer as a whole: outputs in the order of their choices."""

    start: Start
    outputs: list[Output]
    usage: Usage


def collected(events: Iterable[OutputEvent]) -> Collected:
    """The items of complete events without Error."""
    outputs: dict[int, Output] = {}
    start: Start | None = None
    usage: Usage | None = None
    for event in events:
        match event:
            case Start():
                start = event
            case Usage():
                usage = event
            case Error() | Heartbeat():
                pass
            case _:
                outputs.setdefault(event.choice, Output()).take(event)
    if start is None or usage is None:
        raise AssertionError("events of an answer begin with Start and end with Usage")
    return Collected(start=start, outputs=[outputs[at] for at in sorted(outputs)], usage=usage)


def has_calls(output_calls: int, finish: Finish) -> bool:
    """Whether an output ended with its calls: no limit and no stop string cut it off."""
    ended = {EndReason.END_OF_TEXT, EndReason.STOP_TOKEN, EndReason.TOOL_CALLS}
    return output_calls > 0 and finish.reason in ended
