"""Text as it is compared: without case, width, ligatures and invisible characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Set as AbstractSet
from functools import lru_cache

MAX_JOINED = 31
"""Marks and invisible characters after one character that count as part of it."""

_LAST = 0x20000
"""Beyond it nothing joins what stands before it but the selectors of variants."""
_SELECTORS = range(0xE0100, 0xE01F0)
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_BLANKS = str.maketrans("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f", " " * 9)
_INVISIBLE = "\u200b"

Folded = tuple[str, list[int] | None]
"""Folded text, and how many characters each of its characters stands for; None: one each.

Where one character becomes several, the last of them stands for it.
"""


class Folding:
    """Folds a text that comes in pieces, whose borders change nothing.

    A character and what joins it (accents, invisible characters) are folded together: NFKC, then
    Unicode's case folding, white space as blanks. So the last character waits for what may join it.
    """

    def __init__(self) -> None:
        self.waiting = ""

    def push(self, text: str) -> Folded:
        """What is certain now."""
        text, self.waiting = self.waiting + text, ""
        if text.isascii():
            self.waiting = text[-1:]
            return _plain(text[:-1]), None
        units = _units(text)
        self.waiting = units.pop()
        return _folded(units)

    @property
    def opening(self) -> str:
        """How what waits begins, as far as that is certain: its marks may still change it."""
        return _unit(self.waiting)[0]

    def finish(self) -> Folded:
        """What waited."""
        units, self.waiting = [self.waiting] if self.waiting else [], ""
        return _folded(units)


def folded(text: str) -> str:
    """The whole text."""
    return _plain(text) if text.isascii() else "".join(map(_unit, _units(text)))


def is_word(char: str) -> bool:
    """Whether a folded character belongs to a word."""
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"


def _plain(text: str) -> str:
    return text.lower().translate(_BLANKS)


def _folded(units: list[str]) -> Folded:
    parts = list(map(_unit, units))
    text = "".join(parts)
    if len(text) == len(units) == sum(map(len, units)):
        return text, None
    widths: list[int] = []
    for unit, part in zip(units, parts, strict=True):
        widths += [0] * (len(part) - 1)
        widths.append(len(unit))
    return text, widths


def _units(text: str) -> list[str]:
    """Each character with what joins it."""
    joining = _joining()
    if joining.isdisjoint(text):
        return list(text)
    units: list[str] = []
    for char in text:
        if char in joining and units and len(units[-1]) <= MAX_JOINED:
            units[-1] += char
        else:
            units.append(char)
    return units


@lru_cache(maxsize=2**14)
def _unit(unit: str) -> str:
    """One character with what joins it; never empty."""
    seen = "".join(char for char in unit if not _is_invisible(char))
    compatible = unicodedata.normalize("NFKC", seen).casefold()
    shown = "".join(
        " " if char.isspace() else char for char in unicodedata.normalize("NFKC", compatible)
    )
    return shown or _INVISIBLE


def _is_invisible(char: str) -> bool:
    return (
        unicodedata.category(char) == "Cf"
        or char in _FILLERS
        or "\ufe00" <= char <= "\ufe0f"
        or ord(char) in _SELECTORS
    )


@lru_cache(maxsize=1)
def _joining() -> frozenset[str]:
    """Characters that may change or vanish with the one before them."""
    seconds = {*map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))}
    for code in range(0x80, _LAST):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    chars = map(chr, (*range(0x80, _LAST), *_SELECTORS))
    return frozenset(char for char in chars if _joins(char, seconds))


def _joins(char: str, seconds: AbstractSet[str]) -> bool:
    first = unicodedata.normalize("NFKD", char)[0]
    return _is_invisible(char) or unicodedata.combining(first) > 0 or first in seconds
