"""Certificates for tests: an authority, and what it signs for loopback."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFE = timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Files in PEM: who signed, the certificate and its key."""

    ca_file: Path
    cert_file: Path
    key_file: Path


class Authority:
    """Signs for 127.0.0.1 and localhost; its files lie in `folder`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.ca_file = folder / f"{name}.pem"
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = _builder(self._name, self._name, self._key.public_key())
        constraint = x509.BasicConstraints(ca=True, path_length=0)
        certificate = builder.add_extension(constraint, critical=True)
        self.ca_file.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def issue(self, name: str) -> Identity:
        """A server or client of that name."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        builder = _builder(_named(name), self._name, key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        files = Identity(
            ca_file=self.ca_file,
            cert_file=self._folder / f"{name}.pem",
            key_file=self._folder / f"{name}.key",
        )
        files.cert_file.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        files.key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + LIFE)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
