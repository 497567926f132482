"""A family as one vocabulary writes it: its markers, and where each of them leads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from services.codec.output.alphabet import Alphabet
from services.codec.output.family import CallForm, Channels, Family
from services.codec.output.markers import Markers
from services.codec.output.parameter_call import ParameterMarkers
from services.codec.tokenizer import ControlToken


class State(Enum):
    """What the text that comes next belongs to."""

    CONTENT = auto()
    REASONING = auto()
    CALLS = auto()
    HEADER = auto()


@dataclass(frozen=True, slots=True)
class Moves:
    """The markers that count in a state, and the states that they lead to."""

    to: Mapping[str, State]
    markers: Markers


class CallDialect:
    """How calls are written, in the characters of an alphabet."""

    def __init__(self, form: CallForm, alphabet: Alphabet) -> None:
        self.form = form
        self.closes = tuple(map(alphabet.coded, form.closes))
        self.begins = tuple(map(alphabet.coded, form.begins))
        self.ends = tuple(map(alphabet.coded, form.ends))
        self.after = self.ends + self.closes
        self.after_call = Markers(self.after)
        self.string_mark = alphabet.coded(form.string_mark)
        if form.head is not None:
            self.name = re.compile(form.head.pattern, re.DOTALL)
            self.name_ends = Markers(map(alphabet.coded, form.head.ends))
        if form.parameters is not None:
            parameters = form.parameters
            self.parameters = ParameterMarkers(
                begins=alphabet.coded(parameters.begins),
                name_ends=Markers((alphabet.coded(parameters.name_ends),)),
                value_begins=alphabet.coded(parameters.value_begins),
                value_ends=Markers((alphabet.coded(parameters.value_ends),)),
                ends=self.ends or self.closes,
            )


class Dialect:
    """One for all outputs of a model; immutable.

    Args:
        family: of the model.
        tokens: the control tokens of its vocabulary.
    """

    def __init__(self, family: Family, tokens: Iterable[ControlToken]) -> None:
        self.family = family
        self.alphabet = Alphabet(tokens, family.markers())
        self.header_begins: tuple[str, ...] = ()
        self._tables = {with_calls: self._table(with_calls) for with_calls in (False, True)}
        calls, channels = family.calls, family.channels
        self.calls = None if calls is None else CallDialect(calls, self.alphabet)
        if channels is not None:
            self.header_begins = tuple(map(self.alphabet.coded, channels.begins))
            self.message = Markers((self.alphabet.coded(channels.message),))
            self.channel = re.compile(channels.channel)
            self.recipient = re.compile(channels.recipient)

    @property
    def thinks(self) -> bool:
        return self.family.thinking is not None or self.family.channels is not None

    def moves(self, state: State, *, with_calls: bool) -> Moves:
        return self._tables[with_calls][state]

    def call_ids(self) -> frozenset[int]:
        """Tokens that belong to calls alone; where calls are not read they are text."""
        calls = self.family.calls
        return frozenset() if calls is None else self.alphabet.token_ids(calls.markers())

    def begun(self, tail: str) -> State:
        """What the end of a prompt leaves open."""
        thinking, channels = self.family.thinking, self.family.channels
        if channels is not None:
            return self._headed(channels, tail)
        if thinking is None:
            return State.CONTENT
        opened, closed = (tail.rfind(self.alphabet.coded(mark.strip())) for mark in thinking)
        return State.REASONING if opened > closed else State.CONTENT

    def headed(self, header: str) -> State:
        """What a header in plain spelling announces."""
        channels, named = self.family.channels, self.channel.search(header)
        is_thinking = channels is not None and named is not None and named[1] in channels.thinking
        return State.REASONING if is_thinking else State.CONTENT

    def _headed(self, channels: Channels, tail: str) -> State:
        ends = [tail.rfind(self.alphabet.coded(end)) for end in channels.ends]
        header, is_open, _ = tail[max(ends) + 1 :].rpartition(self.alphabet.coded(channels.message))
        return self.headed(self.alphabet.spelled(header)) if is_open else State.HEADER

    def _table(self, with_calls: bool) -> dict[State, Moves]:
        to: dict[State, dict[str, State]] = {State.CONTENT: {}, State.REASONING: {}}
        family = self.family
        if family.thinking is not None:
            opens, closes = family.thinking
            for moves in to.values():
                # A second opening or a stray closing marker shows nothing.
                moves.update({opens: State.REASONING, closes: State.CONTENT})
        if family.channels is not None:
            for moves in to.values():
                marks = (*family.channels.begins, *family.channels.ends)
                moves.update(dict.fromkeys(marks, State.HEADER))
        elif family.calls is not None and with_calls:
            to[State.CONTENT] |= dict.fromkeys(
                (*family.calls.closes, *family.calls.ends), State.CONTENT
            )
            for moves in to.values():
                moves.update(dict.fromkeys(family.calls.opens, State.CALLS))
        return {state: self._coded(moves) for state, moves in to.items()}

    def _coded(self, moves: Mapping[str, State]) -> Moves:
        coded = {self.alphabet.coded(marker): state for marker, state in moves.items()}
        return Moves(coded, Markers(coded))
