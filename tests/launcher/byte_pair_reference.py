"""Byte-level BPE as its papers describe it, slow and plain, to hold a tokenizer against."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import regex  # type: ignore[import-untyped]  # it comes with transformers, without types

# GPT-2's pattern; SmolLM2 first takes each numeric character out as a piece of its own.
WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
NUMERIC = regex.compile(r"(\p{N})")


class BytePairReference:
    """Encodes with the vocabulary, merges and control tokens of a tokenizer.json."""

    def __init__(self, tokenizer: dict[str, Any]) -> None:
        self._vocab: dict[str, int] = tokenizer["model"]["vocab"]
        self._ranks = {
            (left, right): rank for rank, (left, right) in enumerate(tokenizer["model"]["merges"])
        }
        self._added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        longest_first = sorted(self._added, key=len, reverse=True)
        self._controls = regex.compile(f"({'|'.join(map(regex.escape, longest_first))})")
        self._alphabet = byte_alphabet()

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in self._controls.split(text):
            ids += [self._added[part]] if part in self._added else self._encode_plain(part)
        return ids

    def _encode_plain(self, text: str) -> list[int]:
        words = [word for piece in NUMERIC.split(text) for word in WORDS.findall(piece)]
        return [self._vocab[token] for word in words for token in self._merged(word)]

    def _merged(self, word: str) -> list[str]:
        symbols = [self._alphabet[byte] for byte in word.encode()]
        # SmolLM2 has no token for 21 of the bytes and none for the unknown: they vanish.
        symbols = [symbol for symbol in symbols if symbol in self._vocab]
        while known := [pair for pair in pairwise(symbols) if pair in self._ranks]:
            at = list(pairwise(symbols)).index(min(known, key=self._ranks.__getitem__))
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        return symbols


def byte_alphabet() -> list[str]:
    """The character that stands for each byte: itself if it prints, else one from U+0100 on."""
    printing = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printing else chr(next(others)) for byte in range(256)]
