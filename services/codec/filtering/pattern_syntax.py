r"""Patterns: a part of the syntax of regular expressions, in which each match has a bounded length.

Characters, `.`, `[a-z]`, `[^a-z]`, `\d \w \s` and their capitals, groups `( )`, `|`, and the
repeats `?`, `{n}` and `{n,m}`. All ways to read a text are followed at the same time: nothing is
tried again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from services.codec.filtering.characters import ANY, KINDS, Ranges
from services.codec.filtering.folding import folded

MAX_LENGTH = 256
"""Characters of a match."""

_MAX_DEPTH = 32
_REPEAT = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\}")
_SPECIAL = frozenset(".[](){}|?*+^$\\")


class BadPattern(ValueError):
    """A pattern that cannot be used; the text tells why and where."""


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set."""

    characters: Ranges | frozenset[str]


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: Tree
    least: int
    most: int


Tree = One | Sequence | Either | Repeat


def parsed(pattern: str) -> Tree:
    """Raises BadPattern."""
    reader = _Reader(unicodedata.normalize("NFC", pattern))
    tree = reader.either()
    if reader.char:
        reader.fail("has a ) that closes nothing")
    shortest, longest = lengths(tree)
    if not shortest:
        raise BadPattern("matches the empty text")
    if longest > MAX_LENGTH:
        raise BadPattern(f"must match at most {MAX_LENGTH} characters, got {longest}")
    return tree


def lengths(tree: Tree) -> tuple[int, int]:
    """Of the shortest and the longest match."""
    match tree:
        case One():
            return 1, 1
        case Repeat(part, least, most):
            shortest, longest = lengths(part)
            return least * shortest, most * longest
        case Sequence(parts):
            all_lengths = list(map(lengths, parts))
            return sum(low for low, _ in all_lengths), sum(high for _, high in all_lengths)
        case Either(parts):
            all_lengths = list(map(lengths, parts))
            return min(low for low, _ in all_lengths), max(high for _, high in all_lengths)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    @property
    def char(self) -> str:
        """The next character; nothing at the end."""
        return self._pattern[self._at : self._at + 1]

    def fail(self, why: str) -> NoReturn:
        raise BadPattern(f"{why}, at character {self._at + 1}")

    def either(self) -> Tree:
        parts = [self._sequence()]
        while self._takes("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _takes(self, char: str) -> bool:
        is_next = self.char == char
        self._at += is_next
        return is_next

    def _next(self) -> str:
        char = self.char
        if not char:
            self.fail("ends too early")
        self._at += 1
        return char

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self.char not in {"", "|", ")"}:
            parts.append(self._repeated(self._part()))
        return Sequence(tuple(parts))

    def _repeated(self, part: Tree) -> Tree:
        if self.char in {"*", "+"}:
            self.fail(f"must not have {self.char}, which has no bound: write {{0,20}}")
        if self._takes("?"):
            return Repeat(part, 0, 1)
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            return part
        least = int(found[1])
        if found[2] and not found[3]:
            self.fail("must not have a repeat without a bound")
        most = int(found[3]) if found[2] else least
        if not least <= most <= MAX_LENGTH:
            self.fail(f"must have repeats of at most {MAX_LENGTH}, the least first")
        self._at = found.end()
        return Repeat(part, least, most)

    def _part(self) -> Tree:
        reads: dict[str, Callable[[], Tree]] = {
            "(": self._group,
            "[": lambda: One(self._set()),
            ".": lambda: One(ANY),
            "\\": self._escaped,
        }
        char = self._next()
        if char in reads:
            return reads[char]()
        if char in _SPECIAL:
            self._at -= 1
            self.fail(f"must not have a bare {char}")
        return _literal(char)

    def _group(self) -> Tree:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.fail(f"must nest at most {_MAX_DEPTH} groups")
        if self.char == "?" and not self._pattern.startswith("?:", self._at):
            self.fail("must not have groups of this kind")
        if self._takes("?"):
            self._next()
        tree = self.either()
        if not self._takes(")"):
            self.fail("has a ( that is not closed")
        self._depth -= 1
        return tree

    def _escaped(self) -> Tree:
        char = self._next()
        if char in KINDS:
            return One(Ranges(kinds=(KINDS[char],)))
        if char.isalnum():
            self._at -= 1
            self.fail(f"must not have \\{char}")
        return _literal(char)

    def _set(self) -> Ranges:
        negated = self._takes("^")
        ranges, kinds = [], []
        while not self._takes("]"):
            first = self._next()
            if first == "\\" and self.char in KINDS:
                kinds.append(KINDS[self._next()])
                continue
            first = self._plain(first)
            last = first
            if self.char == "-" and self._pattern[self._at + 1 : self._at + 2] not in {"", "]"}:
                self._next()
                last = self._plain(self._next())
            if last < first:
                self.fail(f"has a range that goes down, {first}-{last}")
            ranges.append((first, last))
        if not ranges and not kinds:
            self.fail("has a set of nothing")
        return Ranges(tuple(ranges), tuple(kinds), negated)

    def _plain(self, char: str) -> str:
        """A character of a set."""
        if char != "\\":
            return char
        escaped = self._next()
        if escaped.isalnum():
            self.fail(f"must not have \\{escaped} in a set")
        return escaped


def _literal(char: str) -> Tree:
    """What the character is when it is folded, which may be several."""
    chars = tuple(One(frozenset({part})) for part in folded(char))
    return chars[0] if len(chars) == 1 else Sequence(chars)
