"""A signer's public keys in a file (JWKS, RFC 7517)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

MAX_BYTES = 2**20
MIN_RSA_BITS = 2048
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_SECRET = ("d", "k", "p", "q")
"""Fields of keys that sign."""

_log = logging.getLogger(__name__)


class BadJwks(Exception):
    """A file that cannot be used; the text names it and says why."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key and the algorithms that it may verify, which its kind decides, not a token."""

    key: Any
    algorithms: frozenset[str]


Jwks = Mapping[str | None, SigningKey]
"""Keys by their IDs; None is the ID of the one that has none."""


def read_jwks(path: Path) -> Jwks:
    """The keys that verify signatures. Raises BadJwks when there is none, or one that signs too."""
    keys: dict[str | None, SigningKey] = {}
    for at, entry in enumerate(_entries(path)):
        if not _verifies(path, at, entry):
            continue
        if (name := entry.get("kid")) in keys:
            raise BadJwks(f"{path}: keys[{at}].kid must differ from that of other keys")
        keys[name] = _signing_key(path, at, entry)
    if not keys:
        raise BadJwks(f"{path} must have a public key that verifies signatures")
    return keys


def _entries(path: Path) -> list[Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadJwks(f"{path} must be at most {MAX_BYTES} bytes")
        told = json.loads(path.read_bytes())
        entries = told["keys"]
    except OSError as error:
        raise BadJwks(f"{path} cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadJwks(f"{path} must be JSON with a list `keys`") from error
    if not isinstance(entries, list):
        raise BadJwks(f"{path} must be JSON with a list `keys`")
    return entries


def _verifies(path: Path, at: int, entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("kid", ""), str):
        raise BadJwks(f"{path}: keys[{at}] must be an object whose kid is text")
    if any(name in entry for name in _SECRET):
        raise BadJwks(f"{path}: keys[{at}] must be a public key; this one could sign")
    if entry.get("use", "sig") != "sig":
        _log.info("%s: keys[%d] is not for signatures and is left out", path, at)
        return False
    return True


def _signing_key(path: Path, at: int, entry: dict[str, Any]) -> SigningKey:
    try:
        key = jwt.PyJWK(entry)
    except (jwt.PyJWTError, ValueError) as error:
        raise BadJwks(f"{path}: keys[{at}] cannot be read as a public key") from error
    if not isinstance(key.key, RSAPublicKey):
        return SigningKey(key.key, frozenset({key.algorithm_name}))
    if key.key.key_size < MIN_RSA_BITS:
        raise BadJwks(
            f"{path}: keys[{at}] must have at least {MIN_RSA_BITS} bits, has {key.key.key_size}"
        )
    return SigningKey(key.key, frozenset({entry["alg"]}) if "alg" in entry else _RSA)
