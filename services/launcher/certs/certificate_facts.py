"""What a certificate says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes

Names = x509.SubjectAlternativeName
Extension = TypeVar("Extension", bound=x509.ExtensionType)


@dataclass(frozen=True, kw_only=True, slots=True)
class CertificateFacts:
    """A certificate, for people.

    Attributes:
        subject: its URI, or its own name where it has none.
        uri: None where it has none.
        names: DNS names and addresses.
        issuer: who signed it.
        starts: from when it counts.
        ends: until when.
        fingerprint: SHA-256, hexadecimal.
        is_authority: whether it may sign others.
    """

    subject: str
    uri: str | None
    names: tuple[str, ...]
    issuer: str
    starts: datetime
    ends: datetime
    fingerprint: str
    is_authority: bool

    def state(self, now: datetime) -> str:
        if now < self.starts:
            return "not valid yet"
        return "valid" if now < self.ends else "expired"

    def days_left(self, now: datetime) -> int:
        """Whole days; below zero once it has expired."""
        return (self.ends - now).days


def facts_of(certificate: x509.Certificate) -> CertificateFacts:
    alternative = _extension(certificate, Names)
    uris, names = ([], []) if alternative is None else _names(alternative)
    constraints = _extension(certificate, x509.BasicConstraints)
    own = certificate.subject.rfc4514_string()
    return CertificateFacts(
        subject=uris[0] if uris else own,
        uri=uris[0] if uris else None,
        names=tuple(names),
        issuer=certificate.issuer.rfc4514_string(),
        starts=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
        is_authority=constraints is not None and constraints.ca,
    )


def _names(alternative: Names) -> tuple[list[str], list[str]]:
    """URIs, and all that says where the subject is."""
    hosts = alternative.get_values_for_type(x509.DNSName)
    addresses = map(str, alternative.get_values_for_type(x509.IPAddress))
    return alternative.get_values_for_type(x509.UniformResourceIdentifier), [*hosts, *addresses]


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, ValueError):  # a certificate of others may have strange ones
        return None
