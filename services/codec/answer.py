"""One answer in the making: events of its generations to output events."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from services.codec.cursor import Cursor
from services.codec.events import EndReason, Finish, OutputEvent, Start, Usage
from services.codec.public_error import public_error
from services.codec.request_record import Account
from services.shared.errors import Internal, ServiceError
from services.shared.span_names import Attribute
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Event,
    Failed,
    Finished,
    FinishReason,
    Timeline,
    Tokens,
)

_log = logging.getLogger(__name__)

_REASONS = {
    FinishReason.END_OF_TEXT: EndReason.END_OF_TEXT,
    FinishReason.STOP_TOKEN: EndReason.STOP_TOKEN,
    FinishReason.MAX_TOKENS: EndReason.MAX_TOKENS,
    FinishReason.CONTEXT_FULL: EndReason.CONTEXT_FULL,
    FinishReason.CONSTRAINT_COMPLETE: EndReason.END_OF_TEXT,
}
MAX_ROUTED = 200

_LIMITS = frozenset({EndReason.MAX_TOKENS, EndReason.CONTEXT_FULL})


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerTerms:
    """What an answer needs to know besides what the engine tells.

    Args:
        fills_context: for each prompt, whether its outputs may go on to the end of the context, so
            that to reach the limit of tokens is to fill the context. Prompts have equally many
            outputs, which follow one another.
        prompt_ids: told at the start, where they are wanted; so are the texts.
    """

    fills_context: Sequence[bool]
    prompt_ids: tuple[int, ...] | None = None
    prompt_texts: tuple[str, ...] = ()


@dataclass(slots=True)
class _Output:
    """One choice and what the engine said of it."""

    cursor: Cursor
    accepted: Accepted | None = None
    finish: Finish | None = None
    completion_tokens: int = 0
    timeline: Timeline | None = None


class Answer:
    """Takes the events of a request's generations in whatever portions they come.

    Attributes:
        routed: why the first generation went where it went, in characters of a header.
    """

    def __init__(self, cursors: Sequence[Cursor], terms: AnswerTerms) -> None:
        self._outputs = [_Output(cursor) for cursor in cursors]
        self._terms = terms
        self._early: list[OutputEvent] = []
        self._left = len(cursors)
        self._size = len(cursors) // len(terms.fills_context)
        self._stopped: list[int] = []
        self.has_started = False
        self.routed = ""
        self.failure: ServiceError | None = None

    @property
    def is_complete(self) -> bool:
        return self._left == 0

    def stopped(self) -> list[int]:
        """Choices whose output ended since the last call while their generation may go on."""
        stopped, self._stopped = self._stopped, []
        return stopped

    def take(self, events: Sequence[tuple[int, Event]]) -> list[OutputEvent]:
        """What the events say. `failure` is set when they end in one.

        Raises:
            ServiceError: the request failed before there was anything to tell.
        """
        had_started, was_complete = self.has_started, self.is_complete
        told: list[OutputEvent] = []
        for choice, event in events:
            told += self._told(self._outputs[choice], event)
            if self.failure is not None:
                break
        if self.failure is not None and not had_started:
            raise self.failure
        if self.is_complete and not was_complete:
            told.append(self._usage())
        if not had_started:
            told = self._begun(told)
        return told

    @property
    def used_tokens(self) -> int:
        """Of the prompts that were taken and of all outputs so far, ended or not."""
        outputs = (
            output.completion_tokens if output.finish else output.cursor.tokens
            for output in self._outputs
        )
        return sum(first.prompt_tokens for first in self._firsts()) + sum(outputs)

    def figures(self) -> dict[str, Attribute]:
        """Counts and digests for the log."""
        cursors = [output.cursor for output in self._outputs]
        figures: dict[str, Attribute] = {
            "completion_tokens": sum(cursor.tokens for cursor in cursors),
            "output_digest": ",".join(cursor.digest for cursor in cursors),
            "continuations": sum(timeline.continuations for timeline in self._timelines().values()),
        }
        if self.has_started:
            figures["cached_tokens"] = sum(map(_cached, self._firsts()))
        reasons = [output.finish.reason.value for output in self._outputs if output.finish]
        if reasons:
            figures["finish_reason"] = ",".join(reasons)
        if rules := self._rules():
            figures["filter_rule"] = ",".join(rules)
        return figures

    def tell(self, account: Account) -> None:
        """Writes what the answer came to so far."""
        firsts = self._firsts()
        account.prompt_tokens = sum(first.prompt_tokens for first in firsts)
        account.cached = sum((first.cached_tokens for first in firsts), start=CachedTokens())
        account.completion_tokens = self.used_tokens - account.prompt_tokens
        account.routed = self.routed
        account.filter_rules = self._rules()
        account.timelines = self._timelines()

    def _timelines(self) -> dict[int, Timeline]:
        """Of the generations that ended by themselves, by choice."""
        return {
            output.cursor.choice: output.timeline for output in self._outputs if output.timeline
        }

    def _rules(self) -> list[str]:
        """Of the content filter, that outputs were blocked by."""
        cursors = [output.cursor for output in self._outputs]
        return [cursor.blocked_by for cursor in cursors if cursor.blocked_by is not None]

    def _told(self, output: _Output, event: Event) -> list[OutputEvent]:
        if output.finish is not None:
            return []
        if output.accepted is None and isinstance(event, (Tokens, Finished)):
            _log.error("the engine sent %s before Accepted", type(event).__name__)
            self.failure = Internal("internal error")
            return []
        match event:
            case Tokens():
                deltas = output.cursor.push(event.ids, event.logprobs)
                return [*deltas, *self._ended(output)] if output.cursor.is_done else [*deltas]
            case Accepted():
                # A generation that moved before its first token is accepted again.
                output.accepted = output.accepted or event
                return []
            case Finished():
                output.timeline = event.timeline
                deltas = output.cursor.finish()
                return [*deltas, *self._ended(output, event)]
            case Failed():
                self.failure = public_error(event.error())
                return []

    def _begun(self, told: list[OutputEvent]) -> list[OutputEvent]:
        """Nothing is told before each prompt was taken once."""
        self._early += told
        firsts = self._firsts()
        if len(firsts) < len(self._terms.fills_context):
            return []
        self.has_started = True
        self.routed = _printable(firsts[0].routed)[:MAX_ROUTED]
        start = Start(
            prompt_tokens=sum(first.prompt_tokens for first in firsts),
            cached_tokens=sum(map(_cached, firsts)),
            prompt_ids=self._terms.prompt_ids,
            prompt_texts=self._terms.prompt_texts,
        )
        early, self._early = self._early, []
        return [start, *early]

    def _firsts(self) -> list[Accepted]:
        """What was told of each prompt when the first of its outputs was accepted."""
        size = self._size
        groups = [self._outputs[at : at + size] for at in range(0, len(self._outputs), size)]
        accepted = [[output.accepted for output in group if output.accepted] for group in groups]
        return [group[0] for group in accepted if group]

    def _ended(self, output: _Output, finished: Finished | None = None) -> list[OutputEvent]:
        """The end of one output: by itself, or by what the engine says."""
        cursor = output.cursor
        if cursor.is_done or finished is None:
            output.completion_tokens = cursor.tokens
            reason = EndReason.STOP_STRING
            self._stopped.append(cursor.choice)
        else:
            output.completion_tokens = finished.usage.completion_tokens
            fills_context = self._terms.fills_context[cursor.choice // self._size]
            reason = _reason(finished, fills_context)
        if cursor.blocked_by is not None:
            reason = EndReason.CONTENT_FILTER
        elif cursor.has_calls and not (reason in _LIMITS and cursor.is_cut_in_call):
            reason = EndReason.TOOL_CALLS
        output.finish = Finish(reason=reason, stop=cursor.stop, choice=cursor.choice)
        self._left -= 1
        return [output.finish]

    def _usage(self) -> Usage:
        firsts = self._firsts()
        return Usage(
            prompt_tokens=sum(first.prompt_tokens for first in firsts),
            cached_tokens=sum(map(_cached, firsts)),
            completion_tokens=sum(output.completion_tokens for output in self._outputs),
            reasoning_tokens=sum(output.cursor.reasoning_tokens for output in self._outputs),
        )


def _printable(text: str) -> str:
    return "".join(char if " " <= char <= "~" else "?" for char in text)


def _reason(finished: Finished, fills_context: bool) -> EndReason:
    reason = _REASONS[finished.reason]
    return EndReason.CONTEXT_FULL if reason is EndReason.MAX_TOKENS and fills_context else reason


def _cached(accepted: Accepted) -> int:
    """Cached prompt tokens, wherever they were found."""
    return accepted.cached_tokens.total
