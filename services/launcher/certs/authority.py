"""Who signs certificates, and whom those that it signs are told to trust."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from services.launcher.certs.subject import Subject
from services.shared.tls.certificate_files import Certificates

AUTHORITY_LIFE = timedelta(days=3650)
EARLY = timedelta(minutes=5)
"""Certificates count a little before they are made: clocks differ."""

Key = ec.EllipticCurvePrivateKey


class Expired(Exception):
    """What an authority that is over would sign counts nowhere; the text says since when."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs with one key.

    Attributes:
        certificate: its own.
        key: signs.
        trusted: certificates of all authorities that count now, its own among them.
    """

    certificate: x509.Certificate
    key: Key = field(repr=False)
    trusted: tuple[x509.Certificate, ...]

    @classmethod
    def new(cls, beside: Iterable[x509.Certificate] = ()) -> Authority:
        """A new one; those `beside` it count, too."""
        key = ec.generate_private_key(ec.SECP256R1())
        serial = x509.random_serial_number()
        # A name of its own: where two are trusted, who reads a chain need not try both.
        name = _named(f"tokenway authority {serial:x}"[:64])
        now = _now()
        usage = _usage(signs=True)
        certificate = (
            _builder(name, name, key.public_key(), serial)
            .not_valid_before(now - EARLY)
            .not_valid_after(now + AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key, (*beside, certificate))

    @property
    def ends(self) -> datetime:
        return self.certificate.not_valid_after_utc

    def has_signed(self, certificate: x509.Certificate) -> bool:
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (InvalidSignature, TypeError, ValueError):
            return False
        return True

    def issue(self, subject: Subject, life: timedelta) -> Certificates:
        """A certificate with a new key; it ends no later than the authority. Raises Expired."""
        now = _now()
        if self.ends <= now:
            raise Expired(
                f"the authority expired on {self.ends:%Y-%m-%d %H:%M} UTC; `tokenway certs rotate` "
                "goes on to another"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        name = _named(f"{subject.identity.role}/{subject.identity.name}"[:64])
        issuer, serial = self.certificate.subject, x509.random_serial_number()
        usage = _usage(signs=False)
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if subject.serves:
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        ours = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder(name, issuer, key.public_key(), serial)
            .not_valid_before(max(now - EARLY, self.certificate.not_valid_before_utc))
            .not_valid_after(min(now + life, self.ends))
            .add_extension(subject.names, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(ours, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Certificates(ca=pem(*self.trusted), chain=pem(certificate), key=key_pem(key))


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, serial: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(serial)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    """An authority signs certificates and nothing else; all others sign what they say."""
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
