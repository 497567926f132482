"""A folder of certificates that cannot be shown is told by file and reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from services.launcher.certs.authority import Authority, key_pem, pem
from services.shared.tls.certificate_files import CA, CERTIFICATE, KEY, BadCertificates
from services.shared.tls.identity import Identity, Role
from services.shared.tls.own_certificate import own_certificate
from tests.mesh_bed import Certified

DAY = timedelta(days=1)


def signed(
    authority: Authority, names: list[x509.GeneralName], began: timedelta, ends: timedelta
) -> tuple[bytes, bytes]:
    """A certificate and its key, as the authority's own code would never make them."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + began)
        .not_valid_after(now + ends)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return pem(builder.sign(authority.key, hashes.SHA256())), key_pem(key)


def uri(text: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(text)


ENGINE = uri(Identity(Role.ENGINE, "e").uri)
NAMES = [ENGINE, x509.DNSName("engine.tokenway"), x509.DNSName("stream.tokenway")]


def put(folder: Path, chain: bytes, key: bytes) -> None:
    (folder / CERTIFICATE).write_bytes(chain)
    (folder / KEY).write_bytes(key)


def test_what_is_good_tells_whose_it_is_and_until_when(tmp_path: Path) -> None:
    certified = Certified(tmp_path)
    own = own_certificate(certified.folder(Role.ENGINE, "e7"), Role.ENGINE)
    (leaf,) = x509.load_pem_x509_certificates(own.files.chain)
    assert own.identity == Identity(Role.ENGINE, "e7")
    assert own.not_after == leaf.not_valid_after_utc.timestamp()
    assert own.serial_number == leaf.serial_number


@pytest.mark.parametrize("name", [CA, CERTIFICATE, KEY])
def test_a_file_that_is_missing_or_no_pem_is_named(tmp_path: Path, name: str) -> None:
    folder = Certified(tmp_path).folder(Role.ENGINE)
    (folder / name).write_text("-----BEGIN CERTIFICATE-----\nnot\n-----END CERTIFICATE-----\n")
    with pytest.raises(BadCertificates, match=rf"{name} holds no .* in PEM; make another"):
        own_certificate(folder, Role.ENGINE)
    (folder / name).unlink()
    with pytest.raises(BadCertificates, match=rf"cannot read .*{name}: No such file"):
        own_certificate(folder, Role.ENGINE)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    certified = Certified(tmp_path)
    folder, other = certified.folder(Role.ENGINE), certified.files(Role.ENGINE)
    (folder / KEY).write_bytes(other.key)
    with pytest.raises(BadCertificates, match=r"key\.pem is not the key of cert\.pem"):
        own_certificate(folder, Role.ENGINE)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ENGINE])
def test_a_certificate_of_another_role_is_refused(tmp_path: Path, role: Role) -> None:
    folder = Certified(tmp_path).folder(role, "x")
    with pytest.raises(BadCertificates, match=rf"must be of a engine, got .*/{role}/x"):
        own_certificate(folder, Role.ENGINE)


@pytest.mark.parametrize(
    ("began", "ends", "told"),
    [(-2 * DAY, -DAY, "has expired at"), (DAY, 2 * DAY, "does not count before")],
)
def test_a_certificate_that_does_not_count_now_is_refused(
    tmp_path: Path, began: timedelta, ends: timedelta, told: str
) -> None:
    certified = Certified(tmp_path)
    folder = certified.folder(Role.ENGINE)
    put(folder, *signed(certified.authority, NAMES, began, ends))
    with pytest.raises(BadCertificates, match=rf"cert\.pem {told}"):
        own_certificate(folder, Role.ENGINE)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], "must name one identity of Tokenway by URI, got none"),
        ([uri("spiffe://other/engine/e")], "got spiffe://other/engine/e"),
        ([ENGINE, uri(Identity(Role.ADMIN, "a").uri)], "must name one identity"),
        ([ENGINE], "must carry the DNS name engine.tokenway"),
        (NAMES[:2], "must carry the DNS name stream.tokenway"),
    ],
)
def test_a_certificate_without_the_names_of_its_role_is_refused(
    tmp_path: Path, names: list[x509.GeneralName], told: str
) -> None:
    certified = Certified(tmp_path)
    folder = certified.folder(Role.ENGINE)
    put(folder, *signed(certified.authority, names, -DAY, DAY))
    with pytest.raises(BadCertificates, match=told):
        own_certificate(folder, Role.ENGINE)
