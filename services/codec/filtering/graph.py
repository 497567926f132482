"""Entries of a filter as a graph: which characters lead on from where, and where an entry ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from services.codec.filtering.characters import Characters

MAX_BLANKS = 8
"""White space between two words of a phrase."""

_NONE: Mapping[Node, Characters] = MappingProxyType({})

MAX_NODES = 2_000_000


class TooLarge(ValueError):
    """More than there is room for."""


@dataclass(frozen=True, slots=True)
class End:
    """An entry was read to its end. `rule` counts rules, `is_word` asks for the end of a word."""

    rule: int
    is_word: bool


@dataclass(slots=True, eq=False)
class Node:
    """A place in entries.

    Attributes:
        reach: the number of characters of the longest way to it.
        next: where single characters lead.
        edges: where sets of characters lead.
        end: an entry that ends here.
    """

    reach: int = 0
    next: dict[str, Node] = field(default_factory=dict)
    edges: Mapping[Node, Characters] = field(default_factory=lambda: _NONE)
    end: End | None = None

    def ends(self, end: End) -> None:
        """Of several rules the first counts."""
        if self.end is None or end.rule < self.end.rule:
            self.end = end

    def steps(self, char: str) -> Sequence[Node]:
        """The nodes that the character leads to."""
        known = self.next.get(char)
        if not self.edges:
            return () if known is None else (known,)
        nodes = [node for node, characters in self.edges.items() if char in characters]
        return nodes if known is None else [known, *nodes]


@dataclass(slots=True, eq=False)
class Graph:
    """All entries: those that begin anywhere, and those that begin with a word."""

    anywhere: Node = field(default_factory=Node)
    at_words: Node = field(default_factory=Node)
    nodes: int = 0

    def root(self, *, whole_words: bool) -> Node:
        return self.at_words if whole_words else self.anywhere

    def new(self, reach: int) -> Node:
        """Raises TooLarge."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge(f"all entries together must have at most {MAX_NODES} characters")
        return Node(reach)

    def add_phrase(self, phrase: str, end: End) -> None:
        """A folded phrase; any white space up to MAX_BLANKS may stand for its blanks."""
        places = [self.root(whole_words=end.is_word)]
        for char in phrase:
            places = self._blanks(places[0]) if char == " " else [self._after(places, char)]
        for place in places:
            place.ends(end)

    def _after(self, places: list[Node], char: str) -> Node:
        """All places lead to the same node."""
        node = places[0].next.get(char)
        if node is None:
            node = self.new(places[-1].reach + 1)
        for place in places:
            place.next[char] = node
        return node

    def _blanks(self, place: Node) -> list[Node]:
        blanks: list[Node] = []
        for _ in range(MAX_BLANKS):
            node = place.next.get(" ")
            if node is None:
                node = place.next[" "] = self.new(place.reach + 1)
            blanks.append(node)
            place = node
        return blanks
