"""A set of markers to be found in text that arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a marker stands in a text, or where the beginning of one does at its end."""

    start: int
    end: int
    marker: str | None


class Markers:
    """Finds the leftmost marker. None may be the beginning of another."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts)
        for text in self._texts:
            if any(other.startswith(text) and other != text for other in self._texts):
                raise ValueError(f"the marker {text!r} begins another marker")
        whole = "|".join(re.escape(text) for text in sorted(self._texts)) or "(?!)"
        begun = {text[:size] for text in self._texts for size in range(1, len(text))}
        longest_first = sorted(begun, key=len, reverse=True)
        partial = "|".join(map(re.escape, longest_first)) or "(?!)"
        self._pattern = re.compile(f"({whole})|(?:{partial})\\Z")

    def find(self, text: str, at: int) -> Place | None:
        found = self._pattern.search(text, at)
        return None if found is None else Place(found.start(), found.end(), found[1])
