"""Certificates that are replaced while others read them, and kept by several at once."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from services.launcher.certs.authority import Authority
from services.launcher.certs.issued import issue, keep_issued
from services.launcher.certs.pem_file import PemFile, write_files
from services.launcher.certs.subject import subject
from services.shared.tls.certificate_files import BadCertificates, read_certificates
from services.shared.tls.identity import Role
from services.shared.tls.own_certificate import own_certificate

ENGINE = subject("engine", "one")
COUNT = 20


def test_who_reads_meanwhile_finds_whole_files_and_at_worst_the_next_key(tmp_path: Path) -> None:
    authority, over = Authority.new(), threading.Event()
    issue(authority, ENGINE, tmp_path)

    def read() -> set[str]:
        faults = set()
        while not over.is_set():
            files = read_certificates(tmp_path)
            x509.load_pem_x509_certificates(files.ca + files.chain)
            load_pem_private_key(files.key, None)
            try:
                own_certificate(tmp_path, Role.ENGINE)
            except BadCertificates as error:
                faults.add(str(error))
        return faults

    with ThreadPoolExecutor(2) as readers:
        reading = [readers.submit(read) for _ in range(2)]
        try:
            for _ in range(COUNT):
                issue(authority, ENGINE, tmp_path)
        finally:
            over.set()
        for fault in {fault for each in reading for fault in each.result()}:
            assert "key.pem is not the key of cert.pem" in fault
    assert own_certificate(tmp_path, Role.ENGINE).identity == ENGINE.identity


def test_what_cannot_be_written_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, [PemFile("one", b"1"), PemFile("two", b"2")])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_files(tmp_path, [PemFile("one", b"3"), PemFile("two", b"4")])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "one": b"1",
        "two": b"2",
    }


def test_several_that_keep_one_folder_agree_on_an_authority(tmp_path: Path) -> None:
    names = [f"engine-{number}" for number in range(4)]
    subjects = [subject("engine", name) for name in names]
    with ThreadPoolExecutor(4) as keepers:
        made = [*keepers.map(lambda _: keep_issued(tmp_path, subjects), range(4))]
    assert sorted(map(len, made)) == [0, 0, 0, len(names)]
    trusted = {read_certificates(tmp_path / name).ca for name in names}
    assert trusted == {(tmp_path / "ca" / "ca.pem").read_bytes()}
    for name in names:
        assert own_certificate(tmp_path / name, Role.ENGINE).identity.name == name
