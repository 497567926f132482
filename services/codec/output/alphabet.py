"""Markers that are single tokens, each as one character that no text can contain."""

from __future__ import annotations

import re
from collections.abc import Iterable

from services.codec.tokenizer import ControlToken

# Decoded UTF-8 never has surrogates, so a token's character cannot be forged by text.
_FIRST = 0xD800
_COUNT = 0x800


class Alphabet:
    """Gives each control token that occurs in a marker a character of its own.

    Args:
        tokens: the control tokens of a vocabulary.
        markers: how a family spells its markers.
    """

    def __init__(self, tokens: Iterable[ControlToken], markers: Iterable[str]) -> None:
        spelled = tuple(markers)
        used = [token for token in tokens if any(token.text in marker for marker in spelled)]
        used = sorted(used, key=lambda token: -len(token.text))[:_COUNT]
        self.characters = {token.index: chr(_FIRST + at) for at, token in enumerate(used)}
        self._by_text = {token.text: self.characters[token.index] for token in used}
        self._spelling = {ord(char): text for text, char in self._by_text.items()}
        texts = "|".join(re.escape(token.text) for token in used)
        self._pattern = re.compile(texts or "(?!)")

    def coded(self, marker: str) -> str:
        """The marker as it looks in text that went through the detokenizer."""
        return self._pattern.sub(lambda match: self._by_text[match[0]], marker)

    def spelled(self, text: str) -> str:
        """Text for people: tokens' characters as the vocabulary spells them."""
        return text if text.isascii() else text.translate(self._spelling)

    def token_ids(self, markers: Iterable[str]) -> frozenset[int]:
        """IDs of the tokens that these markers are made of."""
        coded = "".join(map(self.coded, markers))
        return frozenset(index for index, char in self.characters.items() if char in coded)
