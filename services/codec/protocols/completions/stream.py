"""A streamed answer as Completions has it: a machine from output events to chunks."""

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
    ToolStart,
    Usage,
)
from services.codec.protocols.chat_completions.errors import error_object
from services.codec.protocols.chat_completions.reply import usage_object
from services.codec.protocols.chat_completions.stream import DONE, KEEP_ALIVE, frame
from services.codec.protocols.completions.reply import echo, ending, head, logprobs_of
from services.codec.protocols.reply import Reply, told
from services.codec.protocols.running_usage import RunningUsage


class Stream:
    """Frames of server-sent events for one answer. Raw prompts have no calls and no reasoning."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._head = head(reply)
        self._usage = RunningUsage() if reply.delivery.continuous_usage else None
        self._start = Start(prompt_tokens=0, cached_tokens=0)
        self._characters: dict[int, int] = {}

    def frames(self, event: OutputEvent) -> list[bytes]:
        if self._usage is not None:
            self._usage.take(event)
        match event:
            case TextDelta():
                return self._delta(event)
            case Finish():
                return [*self._echo(event.choice), self._chunk(event.choice, "", **ending(event))]
            case Usage():
                return [*self._usage_chunk(event), DONE]
            case Error(error):
                return [frame(error_object(error))]
            case Heartbeat():
                return [KEEP_ALIVE]
            case Start() | ReasoningDelta() | ToolStart() | ToolArguments() | ToolEnd():
                self._start = event if isinstance(event, Start) else self._start
                return []

    def _delta(self, event: TextDelta) -> list[bytes]:
        frames = self._echo(event.choice)
        more: dict[str, Any] = {}
        if event.tokens:
            offset = self._characters[event.choice]
            more["logprobs"] = logprobs_of(self._reply, event.tokens, offset)
            if self._reply.delivery.token_ids:
                more["token_ids"] = [token.token_id for token in event.tokens]
        self._characters[event.choice] += len(event.text)
        if event.text or any(more.values()):
            frames.append(self._chunk(event.choice, event.text, **more))
        return frames

    def _echo(self, choice: int) -> list[bytes]:
        """The prompt before a choice's first text, where it is wanted."""
        if choice in self._characters:
            return []
        echoed = echo(self._reply, self._start, choice)
        self._characters[choice] = len(echoed)
        return [self._chunk(choice, echoed)] if echoed else []

    def _chunk(self, index: int, text: str, **more: Any) -> bytes:
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": None, **more}
        chunk = {**self._head, "choices": [choice]}
        if self._reply.delivery.usage_at_end:
            chunk["usage"] = None if self._usage is None else usage_object(self._usage.now)
        return frame(chunk)

    def _usage_chunk(self, usage: Usage) -> list[bytes]:
        more = told(usage)
        if self._reply.delivery.usage_at_end:
            more["usage"] = usage_object(usage)
        return [frame({**self._head, "choices": [], **more})] if more else []
