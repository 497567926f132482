"""Finds stop strings in text that arrives in pieces."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from services.shared.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Pass:
    """Text that no stop string can take back. May be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The text before the match that was not passed yet, and the stop string that matched."""

    text: str
    stop: str


@dataclass(slots=True, eq=False)
class _Node:
    """A prefix of some stop string. `fail` is its longest proper suffix that is one, too."""

    depth: int
    children: dict[str, _Node] = field(default_factory=dict)
    fail: _Node | None = None
    match: str | None = None


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    stop: str


class StopMatcher:
    """Of all matches the leftmost, of those the longest, however the text is cut into pieces.

    Text is withheld only as far as it may still belong to a match. The automaton is that of Aho and
    Corasick (1975): the time is linear in the text, whatever the stop strings are.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        if "" in stops:
            raise InvalidRequest("stop strings must not be empty", field="stop")
        self._root = _automaton(stops)
        first = "".join(re.escape(char) for char in sorted({stop[0] for stop in stops}))
        self._first = re.compile(f"[{first}]") if stops else None
        self._node = self._root
        self._held = ""
        self._best: _Match | None = None
        self._stopped = False

    def push(self, text: str) -> Pass | Stopped:
        """Takes the next piece. After `Stopped` everything is swallowed."""
        if self._stopped:
            return Pass("")
        if self._first is None:
            return Pass(text)
        at = len(self._held)
        self._held += text
        while at < len(self._held):
            if self._node is self._root and self._best is None:
                found = self._first.search(self._held, at)
                if found is None:
                    at = len(self._held)
                    break
                at = found.start()
            self._advance(self._held[at])
            at += 1
            self._note_matches(at)
            if self._best is not None and self._is_settled(self._best, at):
                return self._stop(self._best)
        return Pass(self._release(at - self._node.depth))

    def finish(self) -> Pass | Stopped:
        """The text has ended: what was withheld comes out, or the match that waited for more."""
        if self._best is not None and not self._stopped:
            return self._stop(self._best)
        self._node = self._root
        return Pass(self._release(len(self._held)))

    def _advance(self, char: str) -> None:
        node: _Node | None = self._node
        while node is not None and char not in node.children:
            node = node.fail
        self._node = self._root if node is None else node.children[char]

    def _note_matches(self, end: int) -> None:
        """Remembers the match that ends here if it starts earlier, or as early and is longer."""
        stop = self._node.match
        if stop is None:
            return
        start = end - len(stop)
        if self._best is None or start <= self._best.start:
            self._best = _Match(start, stop)

    def _is_settled(self, best: _Match, end: int) -> bool:
        """Whether no more text can bring a match that starts earlier, or as early and is longer."""
        return end - self._node.depth > best.start or not self._node.children

    def _stop(self, best: _Match) -> Stopped:
        text = self._release(best.start)
        self._stopped, self._held = True, ""
        return Stopped(text, best.stop)

    def _release(self, end: int) -> str:
        if self._best is not None:
            end = min(end, self._best.start)
            self._best = _Match(self._best.start - end, self._best.stop)
        text, self._held = self._held[:end], self._held[end:]
        return text


def _automaton(stops: tuple[str, ...]) -> _Node:
    root = _Node(0)
    for stop in stops:
        node = root
        for char in stop:
            node = node.children.setdefault(char, _Node(node.depth + 1))
        node.match = stop
    level = [root]
    while level:
        for node in level:
            for char, child in node.children.items():
                _link(node, char, child, root)
        level = [child for node in level for child in node.children.values()]
    return root


def _link(node: _Node, char: str, child: _Node, root: _Node) -> None:
    """Sets the suffix link; a match of the suffix is one here, but a longer one comes first."""
    fail = node.fail
    while fail is not None and char not in fail.children:
        fail = fail.fail
    child.fail = root if fail is None else fail.children[char]
    child.match = child.match or child.fail.match
