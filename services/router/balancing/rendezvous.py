"""Weighted rendezvous hashing: each key has an order of its own among names.

Names that come or go move only the keys that they win or lose, and a name wins keys in proportion
to its weight (Schindelhauer and Schomaker 2005).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import log


def draw(key: bytes, name: str, weight: float) -> float:
    """A number above 0 that depends on key and name alone; the name with the lowest wins."""
    digest = blake2b(name.encode(), digest_size=8, key=key).digest()
    uniform = (int.from_bytes(digest, "little") + 1) / (2**64 + 1)
    return -log(uniform) / weight


def key_of(parts: Iterable[str | bytes]) -> bytes:
    """One key of several; no two lists of parts have the same."""
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()
