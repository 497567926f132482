"""Tokens that somebody else signed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import jwt

from services.shared.access.caller import Caller
from services.shared.access.jwks import Jwks
from services.shared.access.refused import Refused
from services.shared.access.settings import JwtSettings
from services.shared.access.tenant_name import tenant_name

MAX_CHARACTERS = 8192
_REQUIRED = ["exp", "iss", "aud"]
_CAUSES: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "expired token"),
    (jwt.ImmatureSignatureError, "token of later"),
    (jwt.InvalidAudienceError, "token for another audience"),
    (jwt.InvalidIssuerError, "token of another issuer"),
    (jwt.MissingRequiredClaimError, "token without exp, iss or aud"),
    (jwt.InvalidAlgorithmError, "token of an algorithm that does not count"),
    (jwt.InvalidSignatureError, "token with a wrong signature"),
)


class TokenVerifier:
    """Takes tokens of one issuer for one audience.

    `exp` must be there and counts, `nbf` and `iat` count where they are.

    Args:
        settings: what must stand in a token.
        keys: the signer's keys now.
    """

    def __init__(self, settings: JwtSettings, keys: Callable[[], Jwks]) -> None:
        self._settings = settings
        self._keys = keys

    def caller(self, token: str) -> Caller:
        """Whom the token is from. Raises Refused, whose cause quotes nothing of it."""
        if len(token) > MAX_CHARACTERS:
            raise Refused("token that is too long")
        try:
            claims = self._claims(token)
        except jwt.PyJWTError as error:
            raise Refused(_cause(error)) from None
        except (TypeError, ValueError, RecursionError):
            raise Refused("malformed token") from None
        return self._caller(claims)

    def _claims(self, token: str) -> dict[str, Any]:
        """The signer's key is the one that the header names; its kind says what may verify."""
        header = jwt.get_unverified_header(token)
        name = header.get("kid")
        key = self._keys().get(name) if name is None or isinstance(name, str) else None
        if key is None:
            raise Refused("token of another key")
        return jwt.decode(
            token,
            key.key,
            algorithms=sorted(key.algorithms.intersection(self._settings.algorithms)),
            issuer=self._settings.issuer,
            audience=self._settings.audience,
            leeway=self._settings.leeway_s,
            options={"require": _REQUIRED},
        )

    def _caller(self, claims: Mapping[str, Any]) -> Caller:
        try:
            tenant = tenant_name(claims.get(self._settings.tenant_claim))
        except ValueError:
            raise Refused("token without a tenant") from None
        # Subjects may name people.
        subject = sha256(str(claims.get("sub", "")).encode(errors="replace")).hexdigest()[:12]
        return Caller(tenant=tenant, key_id=f"jwt_{subject}")


def _cause(error: jwt.PyJWTError) -> str:
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), "malformed token")
