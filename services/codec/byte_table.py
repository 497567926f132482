"""The bytes that each token of a vocabulary stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_table(
    decoder: Mapping[str, Any] | None, vocabulary: Mapping[str, int], added: Mapping[str, int]
) -> list[bytes] | None:
    """Bytes by token ID; added tokens stand for their own spelling, unused IDs for nothing.

    Args:
        decoder: that of tokenizer.json; byte-level and byte-fallback decoders are known.
        vocabulary: all tokens, added ones included, as the vocabulary spells them.
        added: the added tokens.

    Returns:
        None where the decoder is of another kind.
    """
    spell = _speller(decoder)
    if spell is None:
        return None
    table = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for token, index in vocabulary.items():
        table[index] = token.encode() if token in added else spell(token)
    return table


def _speller(decoder: Mapping[str, Any] | None) -> Callable[[str], bytes] | None:
    steps = (decoder or {}).get("decoders") or [decoder or {}]
    kinds = {step.get("type") for step in steps}
    if "ByteLevel" in kinds:
        return _byte_level(_byte_of_char())
    if kinds & {"ByteFallback", "Metaspace"}:
        return _byte_fallback
    return None


def _byte_level(byte_of: Mapping[str, int]) -> Callable[[str], bytes]:
    def spell(token: str) -> bytes:
        if all(char in byte_of for char in token):
            return bytes(byte_of[char] for char in token)
        return token.encode()

    return spell


def _byte_fallback(token: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(token)
    return bytes([int(match[1], 16)]) if match else token.replace("▁", " ").encode()


def _byte_of_char() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 bytes are themselves, the others follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(0x100 + at): byte for at, byte in enumerate(others)}
