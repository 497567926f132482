"""One output on its way from token IDs to events: text, IDs and likelihoods move together."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.codec.detokenizer import Detokenizer
from services.codec.events import Delta, ReasoningDelta, TextDelta, ToolEvent
from services.codec.filtering.screen import PieceScreen
from services.codec.filtering.screens import Screens
from services.codec.ledger import Ledger
from services.codec.output.parser import OutputParser, Shown
from services.codec.stops import StopMatcher
from services.codec.visible import Piece, Visible
from services.shared.digest import token_digest
from services.shared.stream.events import Logprobs

CursorEvent = Delta | ToolEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class CursorParts:
    """What one output goes through; None leaves a step out."""

    detokenizer: Detokenizer
    matcher: StopMatcher | None = None
    include_stop: bool = False
    parser: OutputParser | None = None
    ledger: Ledger | None = None
    screens: Screens | None = None
    choice: int = 0


class Cursor:
    """Takes tokens in whatever portions they come; what comes out does not depend on them.

    Where anything but plain text is wanted the tokens go through one by one. `tokens` counts them
    up to where the output ends, `reasoning_tokens` those from the marker that opens reasoning to
    the one that closes it.
    """

    def __init__(self, parts: CursorParts) -> None:
        self._parts = parts
        self._detokenizer = parts.detokenizer
        self._parser = parts.parser
        self._ledger = parts.ledger
        self._screens = parts.screens
        self._is_plain = (
            parts.parser is None
            and parts.matcher is None
            and parts.ledger is None
            and parts.screens is None
        )
        self._content = Visible(
            parts.matcher, include_stop=parts.include_stop, keeps_blanks=parts.parser is None
        )
        self._reasoning = Visible(None, include_stop=False, keeps_blanks=False)
        self._received = array("I")
        self._end = 0
        self.tokens = 0
        self.reasoning_tokens = 0

    @property
    def choice(self) -> int:
        return self._parts.choice

    @property
    def digest(self) -> str:
        """Of all IDs that were received."""
        return token_digest(self._received)

    @property
    def stop(self) -> str | None:
        """The stop string that ended the output."""
        return self._content.stop if self.blocked_by is None else None

    @property
    def blocked_by(self) -> str | None:
        """The rule of the content filter that ended the output."""
        return None if self._screens is None else self._screens.rule

    @property
    def is_done(self) -> bool:
        """Whether the output has ended whatever more tokens there are."""
        return self._is_cut_off or self._has_enough_calls

    @property
    def has_calls(self) -> bool:
        """Whether a call was written to its end."""
        calls = None if self._parser is None else self._parser.calls
        return calls is not None and calls.complete > 0

    @property
    def is_cut_in_call(self) -> bool:
        """Whether the output broke off in a call; known after `finish`."""
        calls = None if self._parser is None else self._parser.calls
        return calls is not None and calls.is_cut

    def push(self, ids: Sequence[int], logprobs: Logprobs | None = None) -> list[CursorEvent]:
        """What is certain from now on. After the end there is nothing."""
        self._received.extend(ids)
        if self._is_plain:
            self.tokens += len(ids)
            text = self._detokenizer.push(ids)
            return [TextDelta(text, self._parts.choice)] if text else []
        events: list[CursorEvent] = []
        for at, token in enumerate(ids):
            if self.is_done:
                break
            self.tokens += 1
            events += self._token(token, at, logprobs)
        return _merged(events)

    def finish(self) -> list[CursorEvent]:
        """What was withheld; a stop string may be found at the very end."""
        if self.is_done:
            return []
        text = self._detokenizer.finish()
        events = self._text(text)
        if self._parser is not None and not self.is_done:
            events += self._parsed(self._parser.finish())
        if not self.is_done:
            events += self._deltas(self._reasoning.finish(), is_reasoning=True)
            events += self._deltas(self._content.finish(), is_reasoning=False)
        return _merged(events + self._closed())

    @property
    def _is_cut_off(self) -> bool:
        """Whether what follows in the text is not told."""
        return self._content.stop is not None or self.blocked_by is not None

    @property
    def _has_enough_calls(self) -> bool:
        calls = None if self._parser is None else self._parser.calls
        return calls is not None and calls.is_enough

    def _token(self, token: int, at: int, logprobs: Logprobs | None) -> list[CursorEvent]:
        parser = self._parser
        was_reasoning = parser is not None and parser.is_reasoning
        text = self._detokenizer.push_one(token)
        if self._ledger is not None:
            end = self._end + len(text) + self._detokenizer.is_waiting
            shows = logprobs is not None and not self._detokenizer.hides(token)
            likelihoods = (
                self._ledger.likelihoods(logprobs, at, token)
                if logprobs is not None and shows
                else []
            )
            self._ledger.enter(token, end, likelihoods)
        events = self._text(text)
        if was_reasoning or (parser is not None and parser.is_reasoning):
            self.reasoning_tokens += 1
        return events + self._closed() if self.is_done else events

    def _text(self, text: str) -> list[CursorEvent]:
        start, self._end = self._end, self._end + len(text)
        if not text:
            return []
        if self._parser is None:
            return self._deltas(self._content.push(text, start, self._end), is_reasoning=False)
        return self._parsed(self._parser.push(text))

    def _parsed(self, found: Iterable[Shown | ToolEvent]) -> list[CursorEvent]:
        events: list[CursorEvent] = []
        for item in found:
            if self._is_cut_off:
                break
            if isinstance(item, Shown):
                events += self._shown(item)
                continue
            events += self._left(reasoning=True, content=True)
            if not self._is_cut_off:
                events += [item] if self._screens is None else self._screens.calls.push(item)
        return events

    def _shown(self, item: Shown) -> list[CursorEvent]:
        events = self._left(reasoning=not item.is_reasoning, content=item.is_reasoning)
        if self._is_cut_off:
            return events
        kind = self._reasoning if item.is_reasoning else self._content
        pieces = kind.push(item.text, item.start, item.end)
        return events + self._deltas(pieces, is_reasoning=item.is_reasoning)

    def _left(self, *, reasoning: bool, content: bool) -> list[CursorEvent]:
        """What was withheld of the kinds of text that do not go on."""
        events: list[CursorEvent] = []
        if reasoning:
            events += self._deltas(self._reasoning.leave(), is_reasoning=True)
            events += self._let_out(is_reasoning=True)
        if content:
            events += self._deltas(self._content.leave(), is_reasoning=False)
            events += self._let_out(is_reasoning=False)
        return events

    def _deltas(self, pieces: Sequence[Piece], *, is_reasoning: bool) -> list[CursorEvent]:
        screen = self._screen(is_reasoning=is_reasoning)
        if screen is not None:
            pieces = [cleared for piece in pieces for cleared in screen.push(piece)]
        return self._told(pieces, is_reasoning=is_reasoning)

    def _let_out(self, *, is_reasoning: bool) -> list[CursorEvent]:
        """What the filter withheld of a text that does not go on."""
        screen = self._screen(is_reasoning=is_reasoning)
        return [] if screen is None else self._told(screen.pause(), is_reasoning=is_reasoning)

    def _screen(self, *, is_reasoning: bool) -> PieceScreen | None:
        screens = self._screens
        if screens is None:
            return None
        return screens.reasoning if is_reasoning else screens.content

    def _told(self, pieces: Iterable[Piece], *, is_reasoning: bool) -> list[CursorEvent]:
        kind = ReasoningDelta if is_reasoning else TextDelta
        ledger, choice = self._ledger, self._parts.choice
        if ledger is None:
            return [kind(piece.text, choice) for piece in pieces]
        return [
            kind(piece.text, choice, ledger.release(piece.start, piece.end)) for piece in pieces
        ]

    def _closed(self) -> list[CursorEvent]:
        """The end: what the filter withheld, and the tokens that have shown nothing."""
        events = self._let_out(is_reasoning=True) + self._let_out(is_reasoning=False)
        # The tokens of what was blocked tell what it was.
        return events if self.blocked_by is not None else events + self._rest()

    def _rest(self) -> list[CursorEvent]:
        """The tokens that are left at the end; they have shown nothing."""
        if self._ledger is None:
            return []
        tokens = self._ledger.release(self._end + 1, self._end + 1)
        return [TextDelta("", self._parts.choice, tokens)] if tokens else []


def _merged(events: list[CursorEvent]) -> list[CursorEvent]:
    """Neighbouring deltas of one kind as one."""
    if len(events) < 2:
        return events
    merged = events[:1]
    for event in events[1:]:
        joined = _joined(merged[-1], event)
        if joined is None:
            merged.append(event)
        else:
            merged[-1] = joined
    return merged


def _joined(first: CursorEvent, second: CursorEvent) -> Delta | None:
    if isinstance(first, TextDelta) and isinstance(second, TextDelta):
        return TextDelta(first.text + second.text, first.choice, first.tokens + second.tokens)
    if isinstance(first, ReasoningDelta) and isinstance(second, ReasoningDelta):
        return ReasoningDelta(first.text + second.text, first.choice, first.tokens + second.tokens)
    return None
