"""Reads one text for the entries of a graph."""

from __future__ import annotations

from itertools import accumulate

from services.codec.filtering.automaton import Automaton
from services.codec.filtering.content_filter import Blocked, Cleared, Ruling
from services.codec.filtering.folding import Folded, Folding, is_word


class GraphMatcher:
    """Blocks a text from where the match begins that ends first.

    Text is withheld only as far as a match that has begun may reach back. The time is linear in the
    text, whatever the entries are.

    Args:
        automaton: of all entries.
        names: of the rules, by their numbers.
    """

    def __init__(self, automaton: Automaton, names: tuple[str, ...]) -> None:
        self._automaton = automaton
        self._names = names
        self._folding = Folding()
        self._state = automaton.start
        # Of what was folded and may belong to a match: its text, and where each character began.
        self._window = ""
        self._starts: list[int] = []
        self._borders = {0}
        self._end = 0
        self._paused = 0

    def push(self, text: str) -> Ruling:
        return self._taken(self._folding.push(text)) if text else Cleared(self._cleared())

    def pause(self) -> Ruling:
        ruling = self._taken(self._folding.finish())
        if isinstance(ruling, Blocked):
            return ruling
        if self._state.due is not None:
            return self._blocked(self._state.due, len(self._window))
        self._state = self._automaton.at_border(self._state)
        self._borders.add(len(self._window))
        self._paused = self._end
        return Cleared(self._end)

    def _taken(self, folded: Folded) -> Ruling:
        """Reads character by character."""
        text, widths = folded
        begin = len(self._window)
        self._append(text, widths)
        state, rest = self._state, 0
        for at, char in enumerate(text, begin):
            before = state
            state = before[char]
            if state.is_plain:
                continue
            if state.found is not None:
                ended_before = before.due is not None and not is_word(char)
                return self._blocked(state.found, at if ended_before else at + 1)
            rest = at + 1
        self._state = state
        self._let_go(max(rest, len(self._window) - state.reach))
        return Cleared(self._cleared())

    def _append(self, text: str, widths: list[int] | None) -> None:
        self._window += text
        if widths is None:
            end = self._end + len(text)
            self._starts += range(self._end, end)
        else:
            *starts, end = accumulate(widths, initial=self._end)
            self._starts += starts
        self._end = end

    def _let_go(self, count: int) -> None:
        """Forgets what no match can reach any more."""
        if not count:
            return
        in_word = is_word(self._window[count - 1])
        self._window = self._window[count:]
        del self._starts[:count]
        self._borders = {at - count for at in self._borders if at >= count}
        if not in_word:
            self._borders.add(0)

    def _cleared(self) -> int:
        return max(self._paused, self._starts[0] if self._starts else self._certain())

    def _certain(self) -> int:
        """The end of what was read while no match has begun."""
        waiting = len(self._folding.waiting)
        if not waiting or self._may_begin():
            return self._end
        return self._end + waiting

    def _may_begin(self) -> bool:
        in_word = self._state.in_word
        return self._automaton.may_begin(self._folding.opening, in_word=in_word)

    def _blocked(self, rule: int, end: int) -> Blocked:
        at = self._automaton.started(self._window[:end], self._borders, rule)
        return Blocked(max(self._paused, self._starts[at]), self._names[rule])
