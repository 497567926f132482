"""A streamed answer as Chat Completions has it: a machine from output events to chunks.

The official client appends every string of a delta to what it has: roles, IDs and names are
told once. It takes the last usage that it sees: usage is told last.
"""

from __future__ import annotations

from typing import Any

from services.codec.events import (
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
    ToolStart,
    Usage,
)
from services.codec.protocols.chat_completions.calls import CallDeltas
from services.codec.protocols.chat_completions.errors import error_object
from services.codec.protocols.chat_completions.reply import (
    ending,
    head,
    reasoning_fields,
    usage_object,
)
from services.codec.protocols.chat_completions.tokens import logprobs_of
from services.codec.protocols.reply import Reply, json_bytes, told
from services.codec.protocols.running_usage import RunningUsage

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


class Stream:
    """Frames of server-sent events for one answer."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._head = head(reply, "chat.completion.chunk")
        self._calls = CallDeltas(reply)
        self._usage = RunningUsage() if reply.delivery.continuous_usage else None
        self._is_plain = not reply.delivery.wants_tokens
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def frames(self, event: OutputEvent) -> list[bytes]:
        if self._usage is not None:
            self._usage.take(event)
        match event:
            case TextDelta() | ReasoningDelta():
                return self._delta(event)
            case ToolStart() | ToolArguments() | ToolEnd():
                return self._call(event)
            case Start() | Finish() | Usage():
                return self._border(event)
            case Error(error):
                return [frame(error_object(error))]
            case Heartbeat():
                return [KEEP_ALIVE]

    def _border(self, event: Start | Finish | Usage) -> list[bytes]:
        match event:
            case Start():
                return self._start(event)
            case Finish():
                calls = self._calls.count(event.choice)
                return [self._chunk(event.choice, {}, **ending(self._reply, event, calls))]
            case Usage():
                return [*self._usage_chunk(event), DONE]

    def _start(self, start: Start) -> list[bytes]:
        """Roles in the order of the choices: clients make their lists by them."""
        role = {"role": "assistant", "content": ""}
        chunks = [self._object(at, role) for at in range(self._reply.request.choices)]
        if start.prompt_ids is not None:
            chunks[0]["prompt_token_ids"] = list(start.prompt_ids)
        return [frame(chunk) for chunk in chunks]

    def _delta(self, event: TextDelta | ReasoningDelta) -> list[bytes]:
        if self._is_plain and isinstance(event, TextDelta):
            return self._plain(event)
        if isinstance(event, TextDelta):
            delta = {"content": event.text}
        else:
            delta = reasoning_fields(event.text) if self._reply.request.reasoning.shown else {}
        more = self._tokens(event)
        is_empty = not event.text or not delta
        return [] if is_empty and not more else [self._chunk(event.choice, delta, **more)]

    def _plain(self, event: TextDelta) -> list[bytes]:
        """Text alone: all chunks of a choice share the bytes around it."""
        if not event.text:
            return []
        if event.choice not in self._around:
            empty = self._chunk(event.choice, {"content": None})
            before, content, after = empty.partition(b'"content":null')
            self._around[event.choice] = (before + content[: -len(b"null")], after)
        before, after = self._around[event.choice]
        return [b"%b%b%b" % (before, json_bytes(event.text), after)]

    def _tokens(self, event: TextDelta | ReasoningDelta) -> dict[str, Any]:
        """Log-probabilities are those of visible text, IDs those of all tokens."""
        delivery = self._reply.delivery
        more: dict[str, Any] = {}
        if not event.tokens:
            return more
        if delivery.top_logprobs is not None and isinstance(event, TextDelta):
            more["logprobs"] = logprobs_of(event.tokens)
        if delivery.token_ids:
            more["token_ids"] = [token.token_id for token in event.tokens]
        return more

    def _call(self, event: ToolEvent) -> list[bytes]:
        return [self._chunk(event.choice, delta) for delta in self._calls.deltas(event)]

    def _chunk(self, index: int, delta: dict[str, Any], **more: Any) -> bytes:
        return frame(self._object(index, delta, **more))

    def _object(self, index: int, delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None, **more}
        chunk = {**self._head, "choices": [choice]}
        if self._reply.delivery.usage_at_end:
            chunk["usage"] = None if self._usage is None else usage_object(self._usage.now)
        return chunk

    def _usage_chunk(self, usage: Usage) -> list[bytes]:
        more = told(usage)
        if self._reply.delivery.usage_at_end:
            more["usage"] = usage_object(usage)
        return [frame({**self._head, "choices": [], **more})] if more else []


def frame(value: Any) -> bytes:
    return b"data: %b\n\n" % json_bytes(value)
