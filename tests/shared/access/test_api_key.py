"""Keys are random, and what is kept of them says nothing."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode

from services.shared.access.api_key import MAX_CHARACTERS, ApiKey, digest_of


def test_a_key_begins_with_its_name_and_has_256_random_bits() -> None:
    key = ApiKey.new()
    assert re.fullmatch(r"tw_[a-z2-9]{8}", key.key_id)
    name, secret = key.text[: len(key.key_id)], key.text[len(key.key_id) + 1 :]
    assert name == key.key_id
    assert len(urlsafe_b64decode(secret + "=")) == 32
    assert len(key.text) <= MAX_CHARACTERS


def test_no_two_keys_are_alike_and_none_shows_in_its_repr() -> None:
    keys = [ApiKey.new() for _ in range(100)]
    assert len({key.text for key in keys}) == len({key.key_id for key in keys}) == 100
    assert all(key.text not in repr(key) for key in keys)


def test_every_character_of_a_key_counts_in_its_digest() -> None:
    text = ApiKey.new().text
    others = [text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1 :] for at in range(55)]
    assert len({digest_of(other) for other in [text, text + " ", *others]}) == len(others) + 2
