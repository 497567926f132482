"""A short name for a list of token IDs, so that logs can tell that two hops saw the same."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import sha256


def token_digest(token_ids: Sequence[int]) -> str:
    """16 hexadecimal digits of the SHA-256 over the IDs as 32-bit integers."""
    return sha256(array("I", token_ids).tobytes()).hexdigest()[:16]
