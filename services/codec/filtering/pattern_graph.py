"""A pattern as nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from services.codec.filtering.characters import Characters
from services.codec.filtering.graph import End, Graph, Node, TooLarge
from services.codec.filtering.pattern_syntax import Either, One, Repeat, Sequence, Tree, parsed

MAX_WORK = 50_000
"""Parts of one pattern, and ways from one to the next."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What may follow: edges, and whether the pattern may end."""

    edges: Mapping[Node, Characters]
    may_end: bool

    def __or__(self, other: _Ahead) -> _Ahead:
        return _Ahead({**self.edges, **other.edges}, self.may_end or other.may_end)


def add_pattern(graph: Graph, pattern: str, end: End) -> None:
    """Adds all that the pattern matches.

    Raises:
        BadPattern: it cannot be read, or has no bound.
        TooLarge: it has too many parts.
    """
    tree = parsed(pattern)
    builder = _Builder(graph, end)
    ahead = builder.before(tree, _Ahead({}, may_end=True))
    root = graph.root(whole_words=end.is_word)
    root.edges = {**root.edges, **ahead.edges}
    _measure(ahead.edges)


class _Builder:
    """Builds from the end to the beginning, so that each node knows what follows it."""

    def __init__(self, graph: Graph, end: End) -> None:
        self._graph = graph
        self._end = end
        self._work = 0

    def before(self, tree: Tree, after: _Ahead) -> _Ahead:
        self._takes(1)
        match tree:
            case One(characters):
                return self._one(characters, after)
            case Sequence(parts):
                return reduce(lambda ahead, part: self.before(part, ahead), parts[::-1], after)
            case Either(parts):
                return reduce(_Ahead.__or__, [self.before(part, after) for part in parts])
            case Repeat():
                return self._repeat(tree, after)

    def _repeat(self, repeat: Repeat, after: _Ahead) -> _Ahead:
        ahead = after
        for _ in range(repeat.most - repeat.least):
            ahead = self.before(repeat.part, ahead) | after
        for _ in range(repeat.least):
            ahead = self.before(repeat.part, ahead)
        return ahead

    def _one(self, characters: Characters, after: _Ahead) -> _Ahead:
        self._takes(len(after.edges))
        node = self._graph.new(0)
        node.edges = after.edges
        node.end = self._end if after.may_end else None
        return _Ahead({node: characters}, may_end=False)

    def _takes(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise TooLarge("has too many parts that may follow one another")


def _measure(edges: Iterable[Node]) -> None:
    """Sets how long the longest way to each node is; none leads back."""
    level = set(edges)
    reach = 0
    while level:
        reach += 1
        for node in level:
            node.reach = reach
        level = {after for node in level for after in node.edges}
