"""`tokenway certs`: an authority, what it signs, and how another takes its place."""

from __future__ import annotations

import json
import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from services.launcher.__main__ import main
from services.launcher.certs import authority as authority_module
from services.launcher.certs.certificate_facts import facts_of
from services.launcher.certs.issued import keep_issued
from services.launcher.certs.subject import subject
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.identity import Role, server_names
from tests.tls_pair import handshake

Run = Callable[..., str]


@pytest.fixture
def certs(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; gives what it printed, or its fault."""

    def run(*arguments: str | Path, status: int = 0) -> str:
        assert main(["certs", *map(str, arguments)]) == status
        told = capsys.readouterr()
        assert (told.err if status == 0 else told.out) == ""
        return told.out if status == 0 else told.err

    return run


@pytest.fixture
def ca(certs: Run, tmp_path: Path) -> Path:
    certs("init", tmp_path / "ca")
    return tmp_path / "ca"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def certificate(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / "cert.pem").read_bytes())


def shown(certs: Run, path: Path) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(certs("show", path, "--json"))
    return told


def test_secrets_are_for_their_owner_alone(certs: Run, ca: Path) -> None:
    own = ca.parent / "own"
    certs("issue", "router", "one", "--ca", ca, "--to", own)
    assert [mode(folder) for folder in (ca, own)] == [0o700] * 2
    assert [mode(key) for key in (ca / "ca.key", own / "key.pem")] == [0o600] * 2
    assert {file.name for file in own.iterdir()} == {"ca.pem", "cert.pem", "key.pem"}
    assert {file.name for file in ca.iterdir()} == {"ca.pem", "ca.key"}


def test_an_authority_is_not_dropped_unless_that_is_said(certs: Run, ca: Path) -> None:
    before = (ca / "ca.key").read_bytes()
    assert "is there already" in certs("init", ca, status=1)
    assert (ca / "ca.key").read_bytes() == before
    certs("init", ca, "--replace")
    assert (ca / "ca.key").read_bytes() != before


@pytest.mark.parametrize("role", Role)
def test_a_certificate_says_who_its_holder_is_and_how_it_is_called(
    certs: Run, ca: Path, role: Role
) -> None:
    own = ca.parent / "own"
    serves = bool(server_names(role))
    hosts = ("--host", "gpu1.example", "--host", "10.1.2.3") if serves else ()
    certs("issue", role, "one.a-b_c", "--ca", ca, "--to", own, *hosts)
    facts = facts_of(certificate(own))
    assert facts.uri == f"spiffe://tokenway/{role}/one.a-b_c"
    names = {*server_names(role), "localhost", "127.0.0.1", "::1", "gpu1.example", "10.1.2.3"}
    assert {*facts.names} == (names if serves else set())
    assert timedelta(89) < facts.ends - datetime.now(UTC) <= timedelta(90)


def test_both_ends_of_a_connection_take_what_is_issued_and_nothing_of_others(
    certs: Run, ca: Path
) -> None:
    own, other, ours = (ca.parent / name for name in ("server", "other", "ours"))
    certs("issue", "engine", "one", "--ca", ca, "--to", own)
    certs("issue", "admin", "me", "--ca", ca, "--to", ours)
    certs("init", other / "ca")
    certs("issue", "admin", "me", "--ca", other / "ca", "--to", other)
    assert handshake(own, ours, "engine.tokenway") == "spiffe://tokenway/admin/me"
    with pytest.raises(ssl.SSLError):
        handshake(own, other, "engine.tokenway")
    with pytest.raises(ssl.SSLError, match="Hostname mismatch"):
        handshake(own, ours, "router.tokenway")
    with pytest.raises(ssl.SSLError):
        handshake(ours, own, "engine.tokenway")  # who only calls is no server


def test_one_authority_takes_the_place_of_another_without_a_moment_of_distrust(
    certs: Run, ca: Path
) -> None:
    server, client = ca.parent / "server", ca.parent / "client"

    def issue(folder: Path) -> None:
        role = "engine" if folder == server else "admin"
        certs("issue", role, "one", "--ca", ca, "--to", folder)

    issue(server)
    issue(client)
    first = certificate(server).issuer
    for step, count in (("trust", 2), ("sign", 2), ("forget", 1)):
        assert f"trusts {count} " in certs("rotate", step, ca)
        for folder in (server, client):  # one after the other, and they speak meanwhile
            issue(folder)
            assert handshake(server, client, "engine.tokenway")
    assert certificate(server).issuer != first
    assert len(shown(certs, ca)) == 1
    assert {file.name for file in ca.iterdir()} == {"ca.pem", "ca.key"}


def test_the_steps_from_one_authority_to_another_are_taken_in_order(certs: Run, ca: Path) -> None:
    assert "the first step is trust" in certs("rotate", "sign", ca, status=1)
    certs("rotate", "trust", ca)
    assert "the next step is sign" in certs("rotate", "trust", ca, status=1)
    assert "the next step is sign" in certs("rotate", "forget", ca, status=1)
    assert len(shown(certs, ca)) == 2


def test_what_is_shown_of_a_folder_is_all_but_its_key(certs: Run, ca: Path) -> None:
    own = ca.parent / "own"
    certs("issue", "codec", "one", "--ca", ca, "--to", own, "--days", "7")
    first, second = shown(certs, own)
    assert first["subject"] == "spiffe://tokenway/codec/one"
    assert (first["days_left"], first["state"], first["authority"]) == (6, "valid", False)
    assert first["issuer"] == second["subject"]
    assert second["authority"] is True
    assert first["fingerprint"] == certificate(own).fingerprint(hashes.SHA256()).hex()
    told = certs("show", own / "cert.pem")
    assert all(str(first[name]) in told for name in ("subject", "issuer", "fingerprint"))
    assert "valid, 6 days left" in told


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("boss", "one"), "role must be one of codec, router, engine, admin, client, got 'boss'"),
        (("engine", "One"), "name must be 1 to 63 of"),
        (("engine", "../one"), "name must be 1 to 63 of"),
        (("engine", "x" * 64), "name must be 1 to 63 of"),
        (("engine", "one", "--host", "a b"), "host must be a DNS name or an address, got 'a b'"),
        (("engine", "one", "--host", "x\n"), "host must be a DNS name or an address, got 'x\\n'"),
        (("codec", "one", "--host", "Engine.Tokenway"), "host must not end with .tokenway"),
        (("admin", "one", "--host", "x"), "one of role admin only calls"),
    ],
)
def test_nobody_is_named_who_cannot_be(
    certs: Run, ca: Path, arguments: tuple[str, ...], fault: str
) -> None:
    own = ca.parent / "own"
    told = certs("issue", *arguments, "--ca", ca, "--to", own, status=1)
    assert fault in told
    assert told.count("\n") == 1
    assert not own.exists()


def test_what_cannot_be_used_is_told_in_one_line(certs: Run, ca: Path) -> None:
    own = ca.parent / "own"
    issue = ("issue", "engine", "one", "--to", own, "--ca")
    assert "cannot be read: No such file" in certs(*issue, ca / "none", status=1)
    assert "has no cert.pem and no ca.pem" in certs("show", ca.parent, status=1)
    assert "holds no certificates" in certs("show", ca / "ca.key", status=1)
    (ca / "ca.key").chmod(0o640)
    assert "chmod 600" in certs(*issue, ca, status=1)
    (ca / "ca.key").chmod(0o600)
    certs("init", ca.parent / "other")
    (ca / "ca.key").write_bytes((ca.parent / "other" / "ca.key").read_bytes())
    assert "no certificate of the key" in certs(*issue, ca, status=1)
    (ca / "ca.key").write_text("broken")
    assert "holds no key" in certs(*issue, ca, status=1)
    assert not own.exists()


@pytest.mark.parametrize("days", ["0", "-1", "3651", "many", ""])
def test_days_that_are_none_are_refused(
    ca: Path, days: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["certs", "issue", "engine", "e", "--ca", str(ca), "--to", "x", "--days", days])
    assert "must be between 1 and 3650" in capsys.readouterr().err


def test_nothing_counts_longer_than_who_signed_it_and_nothing_is_signed_later(
    certs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca, own = tmp_path / "ca", tmp_path / "own"
    monkeypatch.setattr(authority_module, "AUTHORITY_LIFE", timedelta(days=2))
    certs("init", ca)
    certs("issue", "engine", "one", "--ca", ca, "--to", own)
    assert shown(certs, own)[0]["ends"] == shown(certs, ca)[0]["ends"]
    monkeypatch.setattr(authority_module, "AUTHORITY_LIFE", timedelta(seconds=-1))
    certs("init", ca, "--replace")
    told = certs("issue", "engine", "one", "--ca", ca, "--to", own, status=1)
    assert "the authority expired on" in told
    assert shown(certs, ca)[0]["state"] == "expired"


def test_kept_certificates_are_made_once_and_anew_when_they_would_not_count(
    certs: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "certs"
    names = ("engine/one", "router", "admin")
    assert len(certs("keep", folder, *names).splitlines()) == 3
    assert certs("keep", folder, *names) == ""
    (folder / "router" / "key.pem").unlink()
    assert certs("keep", folder, *names) == f"made {folder / 'router'}\n"
    certs("issue", "engine", "one", "--ca", folder / "ca", "--to", folder / "one", "--days", "29")
    assert certs("keep", folder, *names) == f"made {folder / 'one'}\n"
    certs("issue", "codec", "admin", "--ca", folder / "ca", "--to", folder / "admin")
    assert certs("keep", folder, *names) == f"made {folder / 'admin'}\n"
    certs("rotate", "trust", folder / "ca")
    assert len(certs("keep", folder, *names).splitlines()) == 3
    assert read_certificates(folder / "one").ca == (folder / "ca" / "ca.pem").read_bytes()


def test_a_kept_authority_that_ends_soon_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subjects = [subject("engine", "one")]
    monkeypatch.setattr(authority_module, "AUTHORITY_LIFE", timedelta(days=29))
    keep_issued(tmp_path, subjects)
    monkeypatch.undo()
    assert keep_issued(tmp_path, subjects) == [tmp_path / "one"]
    assert keep_issued(tmp_path, subjects) == []


@pytest.mark.parametrize("names", [("engine/one", "router/one"), ("client/ca",)])
def test_two_never_share_a_folder(certs: Run, tmp_path: Path, names: tuple[str, ...]) -> None:
    told = certs("keep", tmp_path / "certs", *names, status=1)
    assert "must be of one folder" in told
    assert not (tmp_path / "certs").exists()
