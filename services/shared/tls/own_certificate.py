"""The certificate of this process, and whether it can be shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from services.shared.tls.certificate_files import (
    CA,
    CERTIFICATE,
    KEY,
    BadCertificates,
    Certificates,
    read_certificates,
)
from services.shared.tls.identity import Identity, Role, server_names

_RENEW = "make another one with `tokenway certs issue`"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnCertificate:
    """Who we are, and what proves it.

    Args:
        files: as they are shown to others.
        identity: of the certificate.
        serial_number: of the certificate.
        not_after: when it ends, in seconds since 1970.
    """

    files: Certificates
    identity: Identity
    serial_number: int
    not_after: float


def own_certificate(folder: Path, role: Role) -> OwnCertificate:
    """What a folder holds for a process of that role.

    Raises:
        BadCertificates: it is for somebody else, does not count now, or cannot be read.
    """
    files = read_certificates(folder)
    _certificates(folder / CA, files.ca)
    path = folder / CERTIFICATE
    leaf = _certificates(path, files.chain)[0]
    _check_times(path, leaf)
    _check_key(folder / KEY, files.key, leaf)
    return OwnCertificate(
        files=files,
        identity=_identity(path, leaf, role),
        serial_number=leaf.serial_number,
        not_after=leaf.not_valid_after_utc.timestamp(),
    )


def _certificates(path: Path, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise BadCertificates(f"{path} holds no certificate in PEM; {_RENEW}") from error


def _check_times(path: Path, leaf: x509.Certificate) -> None:
    now = datetime.now(UTC)
    if now >= leaf.not_valid_after_utc:
        raise BadCertificates(f"{path} has expired at {leaf.not_valid_after_utc}; {_RENEW}")
    if now < leaf.not_valid_before_utc:
        raise BadCertificates(f"{path} does not count before {leaf.not_valid_before_utc}")


def _check_key(path: Path, pem: bytes, leaf: x509.Certificate) -> None:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadCertificates(f"{path} holds no private key in PEM; {_RENEW}") from error
    if key.public_key() != leaf.public_key():
        raise BadCertificates(f"{path} is not the key of {CERTIFICATE} beside it; {_RENEW}")


def _identity(path: Path, leaf: x509.Certificate, role: Role) -> Identity:
    uris, names = _alternative_names(leaf)
    identities = [identity for uri in uris if (identity := Identity.parse(uri)) is not None]
    if len(identities) != 1:
        said = ", ".join(uris) or "none"
        raise BadCertificates(f"{path} must name one identity of Tokenway by URI, got {said}")
    identity = identities[0]
    if identity.role is not role:
        raise BadCertificates(f"{path} must be of a {role}, got {identity.uri}; {_RENEW}")
    missing = [name for name in server_names(role) if name not in names]
    if missing:
        raise BadCertificates(f"{path} must carry the DNS name {missing[0]}; {_RENEW}")
    return identity


def _alternative_names(leaf: x509.Certificate) -> tuple[list[str], list[str]]:
    """URIs and DNS names."""
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [], []
    return (
        names.get_values_for_type(x509.UniformResourceIdentifier),
        names.get_values_for_type(x509.DNSName),
    )
