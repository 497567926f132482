"""A folder that holds the certificate of one process, its key, and whom it trusts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

CA, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"


class BadCertificates(Exception):
    """A folder of certificates that cannot be used; the text names the file and what to do."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """All in PEM: authorities that are trusted, the chain of the own certificate, its key."""

    ca: bytes
    chain: bytes
    key: bytes = field(repr=False)


def read_certificates(folder: Path) -> Certificates:
    """Raises BadCertificates for a file that is missing or cannot be read."""
    return Certificates(*(_read(folder / name) for name in (CA, CERTIFICATE, KEY)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCertificates(
            f"cannot read {path}: {error.strerror}; make it with `tokenway certs issue`"
        ) from error
