"""Who we are for the nodes of a store, as the settings have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.engine.kv.cache_settings import DistributedSettings, TlsSettings
from services.engine.kv.stores.redis_access import access_of
from services.shared.config import BadConfig
from services.shared.password_file import MAX_PASSWORD_BYTES
from tests.certificates import Authority

SECRET = "of the store"  # noqa: S105 nobody else knows it


def test_the_password_is_what_the_file_holds_without_its_line_end(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    access = access_of(DistributedSettings(username="engine", password_file=path))
    assert access.password == SECRET
    assert SECRET not in repr(access)


@pytest.mark.parametrize("held", [b"", b"\n", b"x" * (MAX_PASSWORD_BYTES + 1)])
def test_a_file_without_a_password_is_refused(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "password"
    path.write_bytes(held)
    with pytest.raises(BadConfig, match=r"cache.distributed.password_file .* between 1 and 4096"):
        access_of(DistributedSettings(password_file=path))


def test_no_byte_of_a_malformed_password_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_bytes(SECRET.encode() + b"\xff")
    with pytest.raises(BadConfig, match="UTF-8") as raised:
        access_of(DistributedSettings(password_file=path))
    assert SECRET not in repr(raised.value)
    assert raised.value.__cause__ is None


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(BadConfig, match=r"cache.distributed.password_file .*gone cannot be read"):
        access_of(DistributedSettings(password_file=gone))
    for name in ("ca_file", "cert_file"):
        with pytest.raises(BadConfig, match=rf"cache.distributed.tls.{name} .* cannot be read"):
            access_of(DistributedSettings(tls=TlsSettings(enabled=True, **{name: gone})))


def test_a_name_needs_a_password() -> None:
    with pytest.raises(BadConfig, match="password_file must be set when username is"):
        access_of(DistributedSettings(username="engine"))


def test_files_of_tls_need_tls(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"tls.enabled must be true when ca_file is set"):
        access_of(DistributedSettings(tls=TlsSettings(ca_file=tmp_path / "ca.pem")))


def test_a_key_needs_its_certificate_and_must_fit_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = authority.issue("first"), authority.issue("second")
    with pytest.raises(BadConfig, match=r"tls.cert_file must be set when key_file is"):
        access_of(DistributedSettings(tls=TlsSettings(enabled=True, key_file=first.key_file)))
    mixed = TlsSettings(enabled=True, cert_file=first.cert_file, key_file=second.key_file)
    with pytest.raises(BadConfig, match=r"cert_file .* and key_file do not fit"):
        access_of(DistributedSettings(tls=mixed))
    with pytest.raises(BadConfig, match=r"ca_file .* holds no certificate"):
        access_of(DistributedSettings(tls=TlsSettings(enabled=True, ca_file=first.key_file)))
