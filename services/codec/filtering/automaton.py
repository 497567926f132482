"""Reads folded text along a graph: states are made when they are first needed."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

from services.codec.filtering.characters import is_ascii
from services.codec.filtering.folding import is_word
from services.codec.filtering.graph import End, Graph, Node

MAX_STATES = 131_072
MAX_MOVES = 524_288
"""More are forgotten and made again: memory is bounded, and time linear as before."""


class State(dict[str, "State"]):
    """All places where a text may be in the graph, and the states that characters lead to.

    Attributes:
        nodes: the places; none where nothing has begun.
        in_word: whether the last character belongs to a word.
        reach: a match that has begun did so at most this many characters ago.
        found: the rule of an entry that has ended.
        due: the rule of an entry that has if the word ends here.
        rests: whether nothing has begun and nothing was found.
        is_plain: neither at rest nor found: nothing to do but read on.
    """

    __slots__ = ("_automaton", "due", "found", "in_word", "is_plain", "nodes", "reach", "rests")

    def __init__(
        self, automaton: Automaton, nodes: Collection[Node], found: int | None, *, in_word: bool
    ) -> None:
        super().__init__()
        self._automaton = automaton
        self.nodes = nodes
        self.in_word = in_word
        self.reach = 0
        self.found = found
        self.due: int | None = None
        for node in nodes:
            self.reach = max(self.reach, node.reach)
            if node.end is not None:
                self._ends(node.end)
        self.rests = not nodes and self.found is None
        self.is_plain = not self.rests and self.found is None

    def _ends(self, end: End) -> None:
        """Of several rules the first counts."""
        if end.is_word:
            self.due = end.rule if self.due is None else min(self.due, end.rule)
        else:
            self.found = end.rule if self.found is None else min(self.found, end.rule)

    def __missing__(self, char: str) -> State:
        state = self[char] = self._automaton.moved(self, char)
        return state


class Automaton:
    """A deterministic automaton by subsets, as Thompson (1968) ran them. Thread-safe."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._states: dict[tuple[frozenset[Node], bool], State] = {}
        self._moves = 0
        self._openings = (_Opening(graph.anywhere), _Opening(graph.at_words))
        self.start = State(self, (), None, in_word=False)

    def moved(self, state: State, char: str) -> State:
        """Where a character leads."""
        in_word = is_word(char)
        found = state.due if not in_word else None
        if found is not None:
            return State(self, (), found, in_word=in_word)
        self._moves += 1
        if self._moves > MAX_MOVES or len(self._states) > MAX_STATES:
            self._forget()
        nodes = [node for place in self._places(state) for node in place.steps(char)]
        return self._state(frozenset(nodes), in_word=in_word)

    def at_border(self, state: State) -> State:
        """The same with a word that may begin, whatever the last character was."""
        return self._state(frozenset(state.nodes), in_word=False) if state.in_word else state

    def started(self, text: str, borders: Collection[int], rule: int) -> int:
        """Where the earliest match of the rule begins that ends with the text.

        Args:
            text: what was read last.
            borders: where a word may begin although it follows another, or is the text's first.
            rule: was found here.
        """
        graph = self._graph
        in_word = True
        for at, char in enumerate(text):
            starts_word = at in borders or not in_word
            roots = [graph.anywhere, graph.at_words] if starts_word else [graph.anywhere]
            if _reaches(roots, text[at:], rule):
                return at
            in_word = is_word(char)
        raise AssertionError("a match that was found begins somewhere")

    def may_begin(self, char: str, *, in_word: bool) -> bool:
        """Whether a match may begin with the character, or with what marks make of it.

        Args:
            char: folded, perhaps not to its end.
            in_word: whether the one before it belongs to a word.
        """
        openings = self._openings[:1] if in_word else self._openings
        base = _base(char)
        return any(opening.is_with(base) for opening in openings)

    def _places(self, state: State) -> Sequence[Node]:
        if state.in_word:
            return (*state.nodes, self._graph.anywhere)
        return (*state.nodes, self._graph.anywhere, self._graph.at_words)

    def _state(self, nodes: frozenset[Node], *, in_word: bool) -> State:
        known = self._states.get((nodes, in_word))
        if known is None:
            known = State(self, nodes, None, in_word=in_word)
            self._states[nodes, in_word] = known
        return known

    def _forget(self) -> None:
        """States that somebody reads at go on by themselves."""
        self._states = {}
        self._moves = 0
        self.start.clear()


class _Opening:
    """The characters, without their marks, that entries begin with."""

    def __init__(self, root: Node) -> None:
        self._bases = frozenset(map(_base, root.next))
        self._sets = tuple(root.edges.values())

    def is_with(self, base: str) -> bool:
        return base in self._bases or any(
            base in characters or not is_ascii(characters) for characters in self._sets
        )


def _base(char: str) -> str:
    return unicodedata.normalize("NFKD", char)[0]


def _reaches(roots: Sequence[Node], text: str, rule: int) -> bool:
    nodes = set(roots)
    for char in text:
        nodes = {after for node in nodes for after in node.steps(char)}
    return any(node.end is not None and node.end.rule == rule for node in nodes)
