"""Who is at the other end of a call, as the certificate of the connection tells."""

from __future__ import annotations

from typing import Any

from services.shared.tls.identity import Identity

NAMES = "x509_subject_alternative_name"

Context = Any


def identity_of(context: Context) -> Identity | None:
    """None where the certificate names nobody of ours, or more than one."""
    names = context.auth_context().get(NAMES, ())
    found = [Identity.parse(name.decode("utf-8", "replace")) for name in names]
    identities = [identity for identity in found if identity is not None]
    return identities[0] if len(identities) == 1 else None
