"""API keys: random text that a caller shows; who keeps its digest cannot show it.

A key is `tw_`, eight characters that name it, `_` and 256 random bits. Nobody guesses those, so one
fast hash keeps them: a slow password hash would protect nothing, and let whoever shows wrong keys
spend our time.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hashlib import blake2b

PREFIX = "tw_"
NAME_CHARACTERS = 8
SECRET_BYTES = 32
DIGEST_BYTES = 32
MAX_CHARACTERS = 128
"""Longer text is no key of ours, and is not hashed."""

_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """A new key. `text` is told once; `key_id` is its beginning, and no secret."""

    key_id: str
    text: str = field(repr=False)

    @classmethod
    def new(cls) -> ApiKey:
        name = "".join(secrets.choice(_LETTERS) for _ in range(NAME_CHARACTERS))
        key_id = f"{PREFIX}{name}"
        return cls(key_id=key_id, text=f"{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}")


def digest_of(text: str) -> bytes:
    """What is kept of a key. It covers the whole text, so that no part of it can be changed."""
    return blake2b(text.encode(), digest_size=DIGEST_BYTES, person=b"tokenway-key-v1").digest()
