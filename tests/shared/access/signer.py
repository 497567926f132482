"""Somebody who signs tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from services.shared.access.settings import JwtSettings

ISSUER, AUDIENCE = "https://issuer.test", "tokenway"


class Signer:
    """Has a key of each kind, and a file of the public ones."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = Ed25519PrivateKey.generate()

    def public(self) -> list[dict[str, Any]]:
        entries = (
            ("rsa", RSAAlgorithm.to_jwk(self.rsa.public_key())),
            ("ec", ECAlgorithm.to_jwk(self.ec.public_key())),
            ("ed", OKPAlgorithm.to_jwk(self.ed.public_key())),
        )
        return [{**json.loads(entry), "kid": kid, "use": "sig"} for kid, entry in entries]

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps({"keys": self.public()}))
        return path

    def settings(self, path: Path, **changes: Any) -> JwtSettings:
        given: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE, **changes}
        return JwtSettings(jwks_file=self.write(path), **given)

    def token(
        self,
        claims: Mapping[str, Any] | None = None,
        algorithm: str = "RS256",
        headers: Mapping[str, Any] | None = None,
    ) -> str:
        """A good token but for what is said; a claim or a header of None is left out."""
        now = int(time.time())
        all_claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "exp": now + 600,
            "tenant": "acme",
            "sub": "me",
            **(claims or {}),
        }
        kind = {"R": "rsa", "P": "rsa", "E": "ec"}.get(algorithm[0], "ed")
        kind = "ed" if algorithm == "EdDSA" else kind
        all_headers = {"kid": kind, **(headers or {})}
        return jwt.encode(
            {name: value for name, value in all_claims.items() if value is not None},
            getattr(self, kind),
            algorithm=algorithm,
            headers={name: value for name, value in all_headers.items() if value is not None},
        )
