"""Certificates in the folders of those that show them; kept so that they count."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from services.launcher.certs.authority import Authority
from services.launcher.certs.authority_folder import (
    BadAuthority,
    make_authority,
    read_authority,
    read_chain,
)
from services.launcher.certs.certificate_facts import facts_of
from services.launcher.certs.pem_file import FOLDER_MODE, PemFile, write_files
from services.launcher.certs.subject import Subject
from services.shared.tls.certificate_files import CA, CERTIFICATE, KEY

AUTHORITY = "ca"
LIFE = timedelta(days=90)
RENEWED = timedelta(days=30)
"""What ends sooner is made anew, where it is kept."""


def issue(authority: Authority, subject: Subject, folder: Path, life: timedelta = LIFE) -> None:
    """Puts a new certificate in `folder`; services that follow it show it from then on.

    First whom to trust, then the key, then the certificate: who reads between the last two finds a
    key of another certificate, goes on with what it had, and reads again at the next change.

    Raises Expired.
    """
    made = authority.issue(subject, life)
    files = [PemFile(CA, made.ca), PemFile(KEY, made.key, is_secret=True)]
    write_files(folder, [*files, PemFile(CERTIFICATE, made.chain)])


def keep_issued(folder: Path, subjects: Iterable[Subject]) -> list[Path]:
    """Has an authority in `folder/ca`, and for each subject a certificate in `folder/NAME`.

    Made is what is missing, ends within thirty days, is of another subject or of another authority.
    Two that keep the same folder wait for each other.

    Returns:
        The folders of those that were made.

    Raises:
        BadAuthority: there is one that cannot be read.
        ValueError: two subjects would share a folder.
    """
    subjects, made = list(subjects), []
    names = [AUTHORITY, *(subject.identity.name for subject in subjects)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"name must be of one folder, got {', '.join(twice)} for two")
    with _locked(folder):
        authority = _kept_authority(folder / AUTHORITY)
        for subject in subjects:
            own = folder / subject.identity.name
            if not _counts(authority, subject, own):
                issue(authority, subject, own)
                made.append(own)
    return made


def _kept_authority(folder: Path) -> Authority:
    if not (folder / CA).exists():
        return make_authority(folder)
    authority = read_authority(folder)
    if authority.ends - datetime.now(UTC) < RENEWED:
        return make_authority(folder, replace=True)
    return authority


def _counts(authority: Authority, subject: Subject, folder: Path) -> bool:
    """Whether what is in `folder` can be shown for a while."""
    try:
        certificate = read_chain(folder / CERTIFICATE)[0]
        trusted = read_chain(folder / CA)
    except BadAuthority:
        return False
    facts = facts_of(certificate)
    return (
        (folder / KEY).is_file()
        and facts.uri == subject.identity.uri
        and facts.ends - datetime.now(UTC) >= RENEWED
        and authority.has_signed(certificate)
        and trusted == [*authority.trusted]
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
