"""Tells reasoning, tool calls and visible text of one output apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from services.codec.events import ToolEvent
from services.codec.output.calls import Callables, Calls
from services.codec.output.dialect import CallDialect, Dialect, State
from services.codec.output.family import Syntax
from services.codec.output.field_call import Fields
from services.codec.output.named_call import begun, json_arguments, named
from services.codec.output.object_call import object_calls
from services.codec.output.parameter_call import parameters
from services.codec.output.scanner import Scanner, Steps

MAX_HEADER = 1024
_RUNS = re.compile("[\ud800-\udfff]|[^\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """Text to be shown; `start` and `end` are its place in the whole output."""

    text: str
    start: int
    end: int
    is_reasoning: bool


class OutputParser:
    """A state machine over text in which single-token markers are characters of their own.

    Args:
        dialect: the family's markers and moves.
        callables: what may be called; None leaves calls unread, as text.
        tail: the end of the prompt, which tells in what state the output begins.
    """

    def __init__(self, dialect: Dialect, callables: Callables | None, tail: str = "") -> None:
        self._dialect = dialect
        self._scan = Scanner()
        self._out: list[Shown | ToolEvent] = []
        self._state = dialect.begun(tail)
        self._drops_blanks = self._state is not State.CONTENT
        self._origin = State.CONTENT
        self._owes_close = False
        self.calls: Calls | None = None
        if callables is not None and dialect.calls is not None:
            self.calls = Calls(callables, self._out.append, dialect.alphabet.spelled)
        self._steps = self._run()
        next(self._steps)

    @property
    def is_reasoning(self) -> bool:
        return self._state is State.REASONING

    def push(self, text: str) -> list[Shown | ToolEvent]:
        """What the text makes certain."""
        self._scan.feed(text)
        next(self._steps, None)
        out = self._out[:]
        self._out.clear()
        return out

    def finish(self) -> list[Shown | ToolEvent]:
        """What was withheld."""
        self._scan.end()
        return self.push("")

    def _run(self) -> Steps[None]:
        steps: dict[State, Callable[[], Steps[State]]] = {
            State.CONTENT: self._flow,
            State.REASONING: self._flow,
            State.HEADER: self._header,
        }
        calls, dialect = self.calls, self._dialect.calls
        if calls is not None and dialect is not None:
            read, known = self._calls, dialect
            steps[State.CALLS] = lambda: read(calls, known)
            if dialect.form.is_bare and self._state is State.CONTENT:
                yield from self._bare(calls)
        while not self._scan.is_over and not (calls is not None and calls.is_enough):
            yield from self._scan.peek()
            self._state = yield from steps[self._state]()

    def _flow(self) -> Steps[State]:
        """Text up to a marker that counts."""
        moves = self._dialect.moves(self._state, with_calls=self.calls is not None)
        while True:
            start = self._scan.position
            text, marker = yield from self._scan.run(moves.markers)
            self._show(text, start)
            if marker is not None and not self._is_owed(marker):
                return self._moved(marker, moves.to[marker])
            if self._scan.is_over:
                return self._state

    def _is_owed(self, marker: str) -> bool:
        """Shows the end of calls that were given back as text."""
        dialect = self._dialect.calls
        if not self._owes_close or dialect is None or marker not in dialect.after:
            return False
        self._show(marker, self._scan.position - len(marker))
        self._owes_close = marker not in dialect.closes
        return True

    def _moved(self, marker: str, state: State) -> State:
        """What a marker begins is held where it may turn out to be text."""
        self._origin = self._state
        self._drops_blanks = True
        self._owes_close = False
        if state is State.CALLS or marker in self._dialect.header_begins:
            self._scan.hold(self._scan.position - len(marker))
        return state

    def _calls(self, calls: Calls, dialect: CallDialect) -> Steps[State]:
        """Calls up to the marker that closes them. What is none is shown as it came."""
        scan = self._scan
        while (yield from scan.blanks(",;")):
            if (yield from self._reads_one_of(dialect.closes)):
                break
            if dialect.begins and not (yield from self._reads_one_of(dialect.begins)):
                return self._given_back()
            if not (yield from self._call(calls, dialect)):
                return self._given_back()
            if calls.is_enough or (yield from self._is_last(calls, dialect)):
                break
            scan.hold(scan.position)
        else:
            if self._scan.held().strip():
                return self._given_back()
        scan.let_go()
        self._drops_blanks = True
        return State.CONTENT

    def _call(self, calls: Calls, dialect: CallDialect) -> Steps[bool]:
        """One call, or a list of them; False where it is none."""
        scan, syntax = self._scan, dialect.form.syntax
        if (yield from scan.blanks()) in {"{", "["} or syntax is Syntax.OBJECT:
            return (yield from object_calls(scan, calls))
        if dialect.form.head is not None and dialect.form.head.is_open:
            named_here = yield from self._open_name(calls, dialect)
        else:
            named_here = yield from named(scan, calls, dialect.name, dialect.name_ends)
        if not named_here:
            return False
        scan.let_go()
        if syntax is Syntax.NAMED:
            yield from json_arguments(scan, calls)
        elif syntax is Syntax.PARAMETERS:
            yield from parameters(scan, calls, dialect.parameters)
        elif (yield from Fields(scan, calls, dialect.string_mark).read()):
            calls.end()
        return True

    def _open_name(self, calls: Calls, dialect: CallDialect) -> Steps[bool]:
        """A name whose end belongs to what follows."""
        head = ""
        while True:
            text, end = yield from self._scan.run(dialect.name_ends)
            head += text
            if end is not None:
                self._scan.skip(-len(end))
                return begun(calls, head, dialect.name)
            if self._scan.is_over or len(head) > MAX_HEADER:
                return False

    def _is_last(self, calls: Calls, dialect: CallDialect) -> Steps[bool]:
        """Reads on to where a call ends; True where that ends all calls."""
        scan, was_ended = self._scan, not calls.is_open
        if was_ended and dialect.form.syntax is Syntax.PARAMETERS:
            return not dialect.ends
        if was_ended and not dialect.ends:
            if not dialect.closes:
                return True
            if (yield from scan.blanks(",;")) in {"{", "["}:
                return False
        marker = None
        while marker is None and not scan.is_over:
            text, marker = yield from scan.run(dialect.after_call)
            if not was_ended and not calls.is_complete:
                calls.spoil(text)
        if not was_ended:
            calls.end(is_cut=marker is None and not calls.is_complete)
        return marker is None or marker in dialect.closes

    def _bare(self, calls: Calls) -> Steps[None]:
        """Calls that no marker announces: only an output that begins with one has any."""
        scan = self._scan
        scan.hold(scan.position)
        is_call = False
        while (yield from scan.blanks(",;" if is_call else "")) in {"{", "["}:
            before = calls.complete
            if not (yield from object_calls(scan, calls, only_known=True)):
                break
            if calls.is_open:
                yield from self._spoil_all(calls)
            if calls.is_enough or calls.complete == before:
                break
            is_call = self._drops_blanks = True
            scan.hold(scan.position)
        self._given_back()

    def _spoil_all(self, calls: Calls) -> Steps[None]:
        while (yield from self._scan.peek()):
            calls.spoil(self._scan.rest)
            self._scan.skip(len(self._scan.rest))
        calls.end(is_cut=True)

    def _header(self) -> Steps[State]:
        """A message's header, and the call that it may announce."""
        scan, dialect = self._scan, self._dialect
        if not scan.is_holding:
            scan.hold(scan.position)
        _, message = yield from scan.until(dialect.message, MAX_HEADER)
        header = dialect.alphabet.spelled(scan.held())
        self._origin = State.CONTENT
        if message is None:
            if scan.is_over and "<|" in header:
                return State.HEADER
            # Text that is in no message at all is still an answer.
            return self._given_back()
        recipient = dialect.recipient.search(header)
        if recipient is None:
            scan.let_go()
            self._drops_blanks = True
            return dialect.headed(header)
        calls = self.calls
        if calls is None or dialect.calls is None or not calls.begin(recipient[1]):
            return self._given_back()
        scan.let_go()
        yield from json_arguments(scan, calls)
        if not calls.is_enough:
            yield from self._is_last(calls, dialect.calls)
        return State.HEADER

    def _reads_one_of(self, markers: tuple[str, ...]) -> Steps[bool]:
        for marker in markers:
            if (yield from self._scan.reads(marker)):
                return True
        return False

    def _given_back(self) -> State:
        """Shows what was held as it came, as part of what went before it."""
        held = self._scan.held()
        self._scan.let_go()
        self._state = self._origin
        self._owes_close = True
        self._show(held, self._scan.position - len(held))
        return self._origin

    def _show(self, text: str, start: int) -> None:
        if self._drops_blanks:
            kept = text.lstrip()
            start += len(text) - len(kept)
            text = kept
        if not text:
            return
        self._drops_blanks = False
        is_reasoning = self.is_reasoning
        for run in _RUNS.finditer(text):
            place = start + run.start(), start + run.end()
            shown = self._dialect.alphabet.spelled(run[0])
            self._out.append(Shown(shown, *place, is_reasoning))
