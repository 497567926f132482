"""What a filter must say of a whole text, found by looking at each part of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from services.codec.filtering.content_filter import Blocked, OutputMatcher
from services.codec.filtering.folding import folded, is_word
from services.codec.filtering.rules_file import Rule

Verdict = tuple[str, str | None]
"""What is shown, and the rule that blocks the rest."""


def units(text: str) -> list[str]:
    """Characters with their marks, of texts whose marks are U+0301 and U+200B."""
    return re.findall("(?s:.)[\u0301\u200b]*", text)


def expected(text: str, rules: Sequence[Rule]) -> Verdict:
    places = [at for at, unit in enumerate(units(text)) for _ in folded(unit)]
    plain = "".join(folded(unit) for unit in units(text))
    found = min(_found(plain, rules), default=None)
    if found is None:
        return text, None
    _, _, rule, start = found
    return "".join(units(text)[: places[start]]), rules[rule].name


def _found(plain: str, rules: Sequence[Rule]) -> Iterator[tuple[int, int, int, int]]:
    """When each match is certain, ended words first; its rule and where it begins."""
    for number, rule in enumerate(rules):
        spelled = [re.escape(folded(word)).replace("\\ ", " {1,8}") for word in rule.words]
        entries = [re.compile(entry) for entry in (*spelled, *rule.patterns)]
        for start in range(len(plain)):
            if rule.whole_words and start and is_word(plain[start - 1]):
                continue
            for end in range(start + 1, len(plain) + 1):
                is_inside = end < len(plain) and is_word(plain[end])
                if rule.whole_words and is_inside:
                    continue
                if any(entry.fullmatch(plain, start, end) for entry in entries):
                    yield end + rule.whole_words, not rule.whole_words, number, start


def run(matcher: OutputMatcher, pieces: Iterable[str]) -> Verdict:
    """Shows each piece as far as it is cleared, and the end."""
    text, shown = "", 0
    for piece in pieces:
        text += piece
        ruling = matcher.push(piece)
        assert shown <= ruling.upto <= len(text)
        shown = ruling.upto
        if isinstance(ruling, Blocked):
            return text[:shown], ruling.rule
    ruling = matcher.pause()
    assert shown <= ruling.upto <= len(text)
    return text[: ruling.upto], ruling.rule if isinstance(ruling, Blocked) else None


def cut(text: str, places: Iterable[int]) -> list[str]:
    borders = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in pairwise(borders)]
