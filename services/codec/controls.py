"""Which control tokens of a rendered prompt the template wrote, and which were in the text."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.codec.tokenizer import ControlToken

# What the tokenizer's flags lstrip and rstrip take for white space: Unicode's White_Space.
_BLANK = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Ordinary text between two control tokens, and the control token that follows it."""

    text: str
    control: ControlToken | None


def mark() -> str:
    """A random number of 24 digits that cannot overlap another one: only its first digit is 7.

    Digits pass unchanged through what templates do to text: trimming, case, JSON.
    """
    return "7" + "".join(secrets.choice("012345689") for _ in range(23))


class Controls:
    """Breaks control tokens in untrusted text before it is rendered, and finds the others after.

    A mark goes into each spelled control token, and between text and template where the two
    together could spell one. So whatever the rendered prompt shows unbroken, the template wrote.

    Args:
        tokens: the control tokens.
        literals: the template's own texts.
    """

    def __init__(self, tokens: Iterable[ControlToken], literals: Iterable[str]) -> None:
        self._tokens = {token.text: token for token in tokens}
        self._pattern = re.compile(_alternatives(list(self._tokens)))
        heads = {text[:at] for text in self._tokens for at in range(1, len(text))}
        tails = {text[at:] for text in self._tokens for at in range(1, len(text))}
        self._head_at_end = re.compile(rf"{_alternatives(list(heads))}\Z")
        self._tail = re.compile(_alternatives(list(tails)))
        self._longest = max(map(len, self._tokens), default=0)
        # A text inside a control token counts only where a literal may begin the token.
        self._is_open = any(self._ends_with_head(text) for text in literals)
        self._mark = mark()

    def broken(self, text: str) -> str:
        """The text with marks, such that nothing in it or at its ends makes a control token."""
        # Breaking one can uncover another that overlapped it.
        while self._pattern.search(text):
            text = self._pattern.sub(self._break, text)
        # Templates trim texts, so the ends count with and without white space.
        core = text.strip()
        guarded = self._guarded(core)
        # Long texts are not copied without need.
        if guarded != core:
            start = text.index(core)
            text = text[:start] + guarded + text[start + len(core) :]
        return self._guarded(text)

    def whole(self, text: str) -> str:
        """The text without marks."""
        return text.replace(self._mark, "")

    def split(self, rendered: str) -> Iterator[Piece]:
        """Cuts at the control tokens that the template wrote; the pieces are free of marks.

        White space that a control token eats is not in its neighbours.
        """
        start, before = 0, None
        for match in self._pattern.finditer(rendered):
            token = self._tokens[match[0]]
            yield Piece(self._inner(before, rendered[start : match.start()], token), token)
            start, before = match.end(), token
        yield Piece(self._inner(before, rendered[start:], None), None)

    def _inner(self, before: ControlToken | None, text: str, after: ControlToken | None) -> str:
        if before is not None and before.rstrip:
            text = text.lstrip(_BLANK)
        if after is not None and after.lstrip:
            text = text.rstrip(_BLANK)
        return self.whole(text)

    def _break(self, match: re.Match[str]) -> str:
        return match[0][0] + self._mark + match[0][1:]

    def _guarded(self, text: str) -> str:
        head = self._mark if self._tail.match(text) or self._is_inside(text) else ""
        tail = self._mark if self._ends_with_head(text) else ""
        return head + text + tail

    def _ends_with_head(self, text: str) -> bool:
        return self._head_at_end.search(text, max(0, len(text) - self._longest)) is not None

    def _is_inside(self, text: str) -> bool:
        if not self._is_open or not 0 < len(text) < self._longest:
            return False
        return any(text in token for token in self._tokens)


def _alternatives(texts: list[str]) -> str:
    """A pattern for the longest of `texts` at a place, shared beginnings written once."""
    if not texts:
        return "(?!)"
    groups: dict[str, list[str]] = {}
    for text in sorted(filter(None, texts)):
        groups.setdefault(text[0], []).append(text)
    branches = []
    for group in groups.values():
        shared = _shared_beginning(group[0], group[-1])
        rest = [text[len(shared) :] for text in group]
        branches.append(re.escape(shared) + (_alternatives(rest) if any(rest) else ""))
    optional = "?" if "" in texts else ""
    return f"(?:{'|'.join(branches)}){optional}"


def _shared_beginning(first: str, last: str) -> str:
    """What two texts begin with; of a sorted list the first and the last speak for all."""
    size = 0
    while size < min(len(first), len(last)) and first[size] == last[size]:
        size += 1
    return first[:size]
