"""Files of public keys: what verifies is read, what could sign is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from services.shared.access.jwks import BadJwks, read_jwks
from tests.shared.access.signer import Signer


def test_the_kind_of_a_key_says_what_it_verifies(signer: Signer, tmp_path: Path) -> None:
    keys = read_jwks(signer.write(tmp_path / "jwks.json"))
    assert "RS256" in keys["rsa"].algorithms
    assert all(name[:2] in {"RS", "PS"} for name in keys["rsa"].algorithms)
    assert keys["ec"].algorithms == {"ES256"}
    assert keys["ed"].algorithms == {"EdDSA"}


def test_an_algorithm_that_is_named_is_the_only_one(signer: Signer, tmp_path: Path) -> None:
    entry = signer.public()[0] | {"alg": "PS256"}
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [entry, signer.public()[1] | {"use": "enc"}]}))
    keys = read_jwks(path)
    assert {name: key.algorithms for name, key in keys.items()} == {"rsa": {"PS256"}}


def entries(signer: Signer) -> dict[str, Any]:
    good = signer.public()[0]
    weak = RSAAlgorithm.to_jwk(
        rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()  # noqa: S505 weak on purpose
    )
    return {
        "keys[0] must be a public key": [json.loads(RSAAlgorithm.to_jwk(signer.rsa))],
        "keys[0] must be a public": [{"kty": "oct", "k": "c2VjcmV0"}],
        "keys[0] must have at least 2048 bits": [json.loads(weak)],
        "keys[1].kid must differ": [good, good],
        "keys[0] must be an object": ["x"],
        "keys[0] must be an object whose kid": [good | {"kid": 7}],
        "keys[0] cannot be read": [{"kty": "RSA", "n": "x", "e": "y"}],
        "keys[0] cannot be read as": [{"kty": "EC", "crv": "P-999"}],
        "must have a public key": [],
        "with a list": 7,
    }


@pytest.mark.parametrize("at", range(10))
def test_a_file_that_cannot_be_used_is_refused_by_name(
    signer: Signer, tmp_path: Path, at: int
) -> None:
    said, keys = list(entries(signer).items())[at]
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": keys}))
    with pytest.raises(BadJwks) as caught:
        read_jwks(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "{", "[" * 100_000])
def test_what_is_no_file_of_keys_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jwks.json"
    with pytest.raises(BadJwks, match="cannot be read"):
        read_jwks(path)
    path.write_text(text)
    with pytest.raises(BadJwks, match="JSON with a list"):
        read_jwks(path)
