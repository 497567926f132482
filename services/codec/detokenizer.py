"""Token IDs back to text, piece by piece, without ever cutting a character."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence

from services.codec.tokenizer import Tokenizer


class Detokenizer:
    """One output's text. What comes out does not depend on how the IDs are grouped.

    Args:
        tokenizer: knows the bytes of each ID.
        shown: control IDs to print as they are spelled; the others print nothing.
        characters: control IDs that print as one character each, which no text contains.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        shown: frozenset[int] = frozenset(),
        characters: Mapping[int, str] | None = None,
    ) -> None:
        self._token_bytes = tokenizer.token_bytes
        self._hidden = tokenizer.control_ids - shown
        self._characters = characters or {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_waiting(self) -> bool:
        """Whether bytes of an unfinished character wait for more."""
        return bool(self._decoder.getstate()[0])

    def push(self, ids: Sequence[int]) -> str:
        """The text that `ids` complete. With `characters` use `push_one`."""
        token_bytes, hidden = self._token_bytes, self._hidden
        return self._decoder.decode(
            b"".join([b"" if token in hidden else token_bytes(token) for token in ids])
        )

    def push_one(self, token: int) -> str:
        """The text that one ID completes."""
        character = self._characters.get(token)
        if character is not None:
            return self.finish() + character
        return "" if self.hides(token) else self._decoder.decode(self._token_bytes(token))

    def hides(self, token: int) -> bool:
        """Whether the token prints nothing, or nothing but a character of its own."""
        return token in self._hidden

    def finish(self) -> str:
        """The end: an unfinished character becomes one U+FFFD."""
        return self._decoder.decode(b"", final=True)
