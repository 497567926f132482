"""A streamed answer as Responses has it: a machine from output events to events of items."""

from __future__ import annotations

from typing import Any

from services.codec.events import (
    Delta,
    Error,
    Finish,
    Heartbeat,
    OutputEvent,
    ReasoningDelta,
    Start,
    TextDelta,
    ToolArguments,
    ToolEnd,
    ToolEvent,
    Usage,
)
from services.codec.protocols.chat_completions.reply import custom_input
from services.codec.protocols.chat_completions.tokens import logprob_entries
from services.codec.protocols.outputs import Called, Item, Output, Said, Thought, object_text
from services.codec.protocols.reply import Reply, json_bytes
from services.codec.protocols.responses.errors import error_event, failure
from services.codec.protocols.responses.output_items import (
    IN_PROGRESS,
    is_custom,
    item_id,
    item_object,
    text_part,
)
from services.codec.protocols.responses.reply import finished, item_status, response, status_of

KEEP_ALIVE = b": keep-alive\n\n"


class Stream:
    """Frames of server-sent events for one answer; numbers them, opens and closes its items."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._sequence = 0
        self._output = Output()
        self._begun = 0
        self._open: Item | None = None

    def frames(self, event: OutputEvent) -> list[bytes]:
        self._output.take(event)
        match event:
            case Start() | Finish() | Usage():
                return self._border(event)
            case Error(error):
                failed = response(self._reply, "failed") | {"error": failure(error)}
                return [
                    self._event("error", **error_event(error)),
                    self._event("response.failed", response=failed),
                ]
            case Heartbeat():
                return [KEEP_ALIVE]
            case _:
                return [*self._begin(), *self._said(event)]

    def _border(self, event: Start | Finish | Usage) -> list[bytes]:
        match event:
            case Start():
                told = response(self._reply, IN_PROGRESS)
                return [
                    self._event("response.created", response=told),
                    self._event("response.in_progress", response=told),
                ]
            case Finish():
                return self._close()
            case Usage():
                told = finished(self._reply, self._output.items, self._output.finish, event)
                return [self._event(f"response.{status_of(self._output.finish)}", response=told)]

    def _said(self, event: Delta | ToolEvent) -> list[bytes]:
        match event:
            case TextDelta(text) if text:
                logprobs = logprob_entries(event.tokens)
                return [self._in_text("output_text.delta", delta=text, logprobs=logprobs)]
            case ReasoningDelta(text) if text:
                return [self._in_text("reasoning_text.delta", delta=text)]
            case ToolArguments() if not self._is_custom and event.fragment:
                return [self._in_item("function_call_arguments.delta", delta=event.fragment)]
            case ToolEnd():
                return self._close()
            case _:
                return []

    @property
    def _is_custom(self) -> bool:
        return isinstance(self._open, Called) and is_custom(self._reply, self._open)

    def _begin(self) -> list[bytes]:
        """Opens the last item where it is new."""
        items = self._output.items
        if len(items) == self._begun:
            return []
        frames = self._close()
        self._begun, self._open = len(items), items[-1]
        begun = item_object(self._reply, self._begun - 1, self._open, IN_PROGRESS)
        frames.append(self._about_item("added", begun))
        if isinstance(self._open, Said):
            frames.append(self._in_text("content_part.added", part=text_part(Said())))
        return frames

    def _close(self) -> list[bytes]:
        if self._open is None:
            return []
        frames = self._ending(self._open)
        status = item_status(self._begun - 1, self._output.items, self._output.finish)
        item = item_object(self._reply, self._begun - 1, self._open, status)
        self._open = None
        return [*frames, self._about_item("done", item)]

    def _ending(self, item: Item) -> list[bytes]:
        match item:
            case Said():
                part = text_part(item)
                return [
                    self._in_text("output_text.done", text=item.text, logprobs=part["logprobs"]),
                    self._in_text("content_part.done", part=part),
                ]
            case Thought():
                return [self._in_text("reasoning_text.done", text=item.text)]
            case Called():
                return self._call_ending(item)

    def _call_ending(self, call: Called) -> list[bytes]:
        """What of the arguments was not told yet, and all of them; a custom tool's text at once."""
        if is_custom(self._reply, call):
            text = custom_input(object_text(call))
            told = [self._in_item("custom_tool_call_input.delta", delta=text)] if text else []
            return [*told, self._in_item("custom_tool_call_input.done", input=text)]
        arguments = object_text(call)
        rest = arguments[len(call.sent) :]
        told = [self._in_item("function_call_arguments.delta", delta=rest)] if rest else []
        done = {"arguments": arguments, "name": call.name}
        return [*told, self._in_item("function_call_arguments.done", **done)]

    def _about_item(self, what: str, item: dict[str, Any]) -> bytes:
        at = self._begun - 1
        return self._event(f"response.output_item.{what}", output_index=at, item=item)

    def _in_text(self, kind: str, **content: Any) -> bytes:
        return self._in_item(kind, content_index=0, **content)

    def _in_item(self, kind: str, **content: Any) -> bytes:
        at = self._begun - 1
        named = {"item_id": item_id(self._reply, at, self._output.items[at]), "output_index": at}
        return self._event(f"response.{kind}", **named, **content)

    def _event(self, kind: str, **content: Any) -> bytes:
        told = json_bytes({"type": kind, "sequence_number": self._sequence, **content})
        self._sequence += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), told)
