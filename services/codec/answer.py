"""One answer in the making: events of a generation to output events."""

from __future__ import annotations

import logging

from services.codec.decoding import Decoding
from services.codec.events import EndReason, Finish, OutputEvent, Start, TextDelta, Usage
from services.codec.public_error import public_error
from services.shared.errors import Internal, ServiceError
from services.shared.stream.events import Accepted, Event, Failed, Finished, FinishReason, Tokens
from services.shared.telemetry import Attribute

_log = logging.getLogger(__name__)

_REASONS = {
    FinishReason.END_OF_TEXT: EndReason.END_OF_TEXT,
    FinishReason.STOP_TOKEN: EndReason.STOP_TOKEN,
    FinishReason.MAX_TOKENS: EndReason.MAX_TOKENS,
    FinishReason.CONTEXT_FULL: EndReason.CONTEXT_FULL,
    FinishReason.CONSTRAINT_COMPLETE: EndReason.END_OF_TEXT,
}


class Answer:
    """Takes a generation's events in whatever portions they come.

    Args:
        decoding: of the one output.
        fills_context: the output may go on to the end of the context, so that to reach the limit
            of tokens is to fill the context.
    """

    def __init__(self, decoding: Decoding, *, fills_context: bool) -> None:
        self._decoding = decoding
        self._fills_context = fills_context
        self._accepted: Accepted | None = None
        self._finish: Finish | None = None
        self.failure: ServiceError | None = None

    @property
    def has_started(self) -> bool:
        return self._accepted is not None

    @property
    def is_complete(self) -> bool:
        return self._finish is not None

    @property
    def is_stopped(self) -> bool:
        """Whether a stop string ended the answer; the generation may still go on."""
        return self._decoding.stop is not None

    def take(self, events: list[Event]) -> list[OutputEvent]:
        """What the events say. `failure` is set when they end in one.

        Raises:
            ServiceError: the generation failed before there was anything to tell.
        """
        had_started = self.has_started
        out: list[OutputEvent] = []
        for event in events:
            out += self._outputs(event)
            if self.is_complete or self.failure is not None:
                break
        if self.failure is not None and not had_started:
            raise self.failure
        return out

    def figures(self) -> dict[str, Attribute]:
        """Counts and digests for the log."""
        figures: dict[str, Attribute] = {
            "completion_tokens": self._decoding.tokens,
            "output_digest": self._decoding.digest,
        }
        if self._accepted is not None:
            figures["cached_tokens"] = _cached(self._accepted)
        if self._finish is not None:
            figures["finish_reason"] = self._finish.reason.value
        return figures

    def _outputs(self, event: Event) -> list[OutputEvent]:
        if self._accepted is None and isinstance(event, (Tokens, Finished)):
            _log.error("the engine sent %s before Accepted", type(event).__name__)
            self.failure = Internal("internal error")
            return []
        match event:
            case Tokens():
                text = self._decoding.push(event.ids)
                return [*_delta(text), *self._stopped()]
            case Accepted():
                return self._start(event)
            case Finished():
                return [*_delta(self._decoding.finish()), *(self._stopped() or self._end(event))]
            case Failed():
                self.failure = public_error(event.error())
                return []

    def _start(self, accepted: Accepted) -> list[OutputEvent]:
        """A generation that moved before its first token is accepted again; once is told."""
        if self._accepted is not None:
            return []
        self._accepted = accepted
        cached = _cached(accepted)
        return [Start(prompt_tokens=accepted.prompt_tokens, cached_tokens=cached)]

    def _stopped(self) -> list[OutputEvent]:
        if self._decoding.stop is None or self._accepted is None:
            return []
        self._finish = Finish(reason=EndReason.STOP_STRING, stop=self._decoding.stop)
        usage = Usage(
            prompt_tokens=self._accepted.prompt_tokens,
            cached_tokens=_cached(self._accepted),
            completion_tokens=self._decoding.tokens,
        )
        return [self._finish, usage]

    def _end(self, finished: Finished) -> list[OutputEvent]:
        reason = _REASONS[finished.reason]
        if reason is EndReason.MAX_TOKENS and self._fills_context:
            reason = EndReason.CONTEXT_FULL
        self._finish = Finish(reason=reason)
        usage = Usage(
            prompt_tokens=finished.usage.prompt_tokens,
            cached_tokens=finished.usage.cached_tokens,
            completion_tokens=finished.usage.completion_tokens,
        )
        return [self._finish, usage]


def _cached(accepted: Accepted) -> int:
    """Cached prompt tokens, wherever they were found."""
    cached = accepted.cached_tokens
    return cached.device + cached.host + cached.peer + cached.service


def _delta(text: str) -> list[OutputEvent]:
    return [TextDelta(text)] if text else []
