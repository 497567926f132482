"""A folder that holds an authority: whom to trust, and the key that signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from services.launcher.certs.authority import Authority, Key, key_pem, pem
from services.launcher.certs.pem_file import PemFile, write_files
from services.shared.tls.certificate_files import CA

KEY, NEXT_KEY = "ca.key", "next.key"
MAX_BYTES = 2**20
_OTHERS = 0o077


class BadAuthority(Exception):
    """A folder that cannot be used, or not for that; the text names the file and says why."""


def make_authority(folder: Path, *, replace: bool = False) -> Authority:
    """A new authority in `folder`. Raises BadAuthority where one is, unless it may be replaced."""
    if not replace:
        for name in (CA, KEY):
            if (folder / name).exists():
                raise BadAuthority(
                    f"{folder / name} is there already; `tokenway certs rotate` goes on to another "
                    "authority without a break, --replace drops it"
                )
    authority = Authority.new()
    (folder / NEXT_KEY).unlink(missing_ok=True)
    write_files(folder, [_secret(KEY, authority.key), _trust(authority.trusted)])
    return authority


def read_authority(folder: Path) -> Authority:
    """Raises BadAuthority."""
    trusted, key = read_chain(folder / CA), _read_key(folder / KEY)
    return Authority(_of_key(trusted, key, folder), key, tuple(trusted))


def read_chain(path: Path) -> list[x509.Certificate]:
    """All certificates of a file, at least one. Raises BadAuthority."""
    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError as error:
        raise BadAuthority(f"{path} holds no certificates in PEM") from error


def trust_next(folder: Path) -> Authority:
    """Makes another authority, which is trusted from now on and does not sign yet."""
    now = read_authority(folder)
    if (folder / NEXT_KEY).exists():
        raise BadAuthority(f"{folder / NEXT_KEY} is there already; the next step is sign")
    following = Authority.new(beside=now.trusted)
    write_files(folder, [_trust(following.trusted), _secret(NEXT_KEY, following.key)])
    return following


def sign_by_next(folder: Path) -> Authority:
    """The other authority signs from now on; the one from before is still trusted."""
    if not (folder / NEXT_KEY).exists():
        raise BadAuthority(f"{folder / NEXT_KEY} is not there; the first step is trust")
    trusted, key = read_chain(folder / CA), _read_key(folder / NEXT_KEY)
    following = Authority(_of_key(trusted, key, folder), key, tuple(trusted))
    (folder / NEXT_KEY).replace(folder / KEY)
    return following


def forget_others(folder: Path) -> Authority:
    """Only the authority that signs is trusted from now on."""
    now = read_authority(folder)
    if (folder / NEXT_KEY).exists():
        raise BadAuthority(f"{folder / NEXT_KEY} does not sign yet; the next step is sign")
    alone = Authority(now.certificate, now.key, (now.certificate,))
    write_files(folder, [_trust(alone.trusted)])
    return alone


STEPS: dict[str, Callable[[Path], Authority]] = {
    "trust": trust_next,
    "sign": sign_by_next,
    "forget": forget_others,
}
"""From one authority to the next, in this order; after each all certificates are issued again."""


def _of_key(trusted: Sequence[x509.Certificate], key: Key, folder: Path) -> x509.Certificate:
    public = key.public_key()
    for certificate in trusted:
        if certificate.public_key() == public:
            return certificate
    raise BadAuthority(f"{folder / CA} has no certificate of the key that signs")


def _read_key(path: Path) -> Key:
    data = _read(path)
    if path.stat().st_mode & _OTHERS:
        raise BadAuthority(f"{path} must be for its owner alone: chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(data, None)
    except (TypeError, ValueError) as error:
        raise BadAuthority(f"{path} holds no key in PEM without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadAuthority(f"{path} must hold a key of an elliptic curve")
    return key


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadAuthority(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise BadAuthority(f"{path} must be at most {MAX_BYTES} bytes")
    return data


def _secret(name: str, key: Key) -> PemFile:
    return PemFile(name, key_pem(key), is_secret=True)


def _trust(certificates: Sequence[x509.Certificate]) -> PemFile:
    return PemFile(CA, pem(*certificates))
