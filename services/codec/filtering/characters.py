"""Sets of folded characters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.codec.filtering.folding import is_word


class Characters(Protocol):
    """A set of folded characters."""

    def __contains__(self, char: object, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Ranges:
    """What lies in one of the ranges, or is of one of the kinds; capitals count as their letters.

    Args:
        ranges: pairs of the first and the last character.
        kinds: other sets.
        negated: all others.
    """

    ranges: tuple[tuple[str, str], ...] = ()
    kinds: tuple[Kind, ...] = ()
    negated: bool = False

    def __contains__(self, char: object, /) -> bool:
        assert isinstance(char, str)  # noqa: S101 nothing else is asked
        upper = char.upper()
        is_in = any(
            first <= char <= last or first <= upper <= last for first, last in self.ranges
        ) or any(kind.holds(char) for kind in self.kinds)
        return is_in is not self.negated


@dataclass(frozen=True, slots=True)
class Kind:
    """Characters of a kind; `opposite` are all others."""

    test: Callable[[str], bool]
    opposite: bool = False

    def holds(self, char: str) -> bool:
        return self.test(char) is not self.opposite


_TESTS: dict[str, Callable[[str], bool]] = {
    "d": str.isdecimal,
    "w": is_word,
    "s": str.isspace,
}
KINDS = {name: Kind(test) for name, test in _TESTS.items()} | {
    name.upper(): Kind(test, opposite=True) for name, test in _TESTS.items()
}
ANY = Ranges(negated=True)


def is_ascii(characters: Characters) -> bool:
    """Whether it surely holds nothing else."""
    if isinstance(characters, Ranges):
        is_open = characters.negated or characters.kinds
        return not is_open and all(last < "\x80" for _, last in characters.ranges)
    return isinstance(characters, frozenset) and all(char < "\x80" for char in characters)
