"""Token IDs back to text, piece by piece, without ever cutting a character."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from services.codec.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Released:
    """Text that is complete by now.

    `token_count` says how many IDs, counted on from those of earlier results, have all their bytes
    in the text released by now. IDs that print nothing count with the text before them.
    """

    text: str
    token_count: int


class Detokenizer:
    """One output's text. What comes out does not depend on how the IDs are grouped.

    Args:
        tokenizer: knows the bytes of each ID.
        shown: control IDs to print as they are spelled; the others print nothing.
    """

    def __init__(self, tokenizer: Tokenizer, *, shown: frozenset[int] = frozenset()) -> None:
        self._tokenizer = tokenizer
        self._hidden = tokenizer.control_ids - shown
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: list[int] = []

    def push(self, ids: Sequence[int]) -> Released:
        """The text that `ids` complete; bytes of an unfinished character wait for more."""
        token_bytes, hidden = self._tokenizer.token_bytes, self._hidden
        pieces = [b"" if token in hidden else token_bytes(token) for token in ids]
        text = self._decoder.decode(b"".join(pieces))
        return Released(text, self._count([len(piece) for piece in pieces]))

    def finish(self) -> Released:
        """The end: an unfinished character becomes one U+FFFD."""
        text = self._decoder.decode(b"", final=True)
        return Released(text, self._count([]))

    def _count(self, sizes: list[int]) -> int:
        """Tokens whose last byte is out; `_held` keeps the byte counts of the others."""
        sizes = self._held + sizes
        waiting = len(self._decoder.getstate()[0])
        at = len(sizes)
        while waiting > 0:
            at -= 1
            waiting -= sizes[at]
        self._held = sizes[at:]
        return at
