"""Certificates of a folder or a file, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from services.launcher.certs.authority_folder import BadAuthority, read_chain
from services.launcher.certs.certificate_facts import CertificateFacts, facts_of
from services.shared.tls.certificate_files import CA, CERTIFICATE


@dataclass(frozen=True, slots=True)
class Shown:
    """A certificate and the file that holds it."""

    path: Path
    facts: CertificateFacts


def shown(path: Path) -> list[Shown]:
    """All certificates of a file; of a folder its own one first and then whom it trusts.

    Raises BadAuthority where there are none.
    """
    files = [file for name in (CERTIFICATE, CA) if (file := path / name).exists()]
    if path.is_dir() and not files:
        raise BadAuthority(f"{path} has no {CERTIFICATE} and no {CA}")
    return [
        Shown(file, facts_of(certificate))
        for file in (files if path.is_dir() else [path])
        for certificate in read_chain(file)
    ]


def certificate_table(certificates: Sequence[Shown]) -> RenderableType:
    """A block of lines for each: what stands in them is too long for columns."""
    now = datetime.now(UTC)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for at, one in enumerate(certificates):
        if at:
            table.add_row()
        for name, value in _rows(one, now):
            table.add_row(name, value)
    return table


def json_of(certificates: Sequence[Shown]) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [
        {
            "file": str(one.path),
            "subject": one.facts.subject,
            "authority": one.facts.is_authority,
            "names": list(one.facts.names),
            "issuer": one.facts.issuer,
            "starts": one.facts.starts.isoformat(),
            "ends": one.facts.ends.isoformat(),
            "days_left": one.facts.days_left(now),
            "state": one.facts.state(now),
            "fingerprint": one.facts.fingerprint,
        }
        for one in certificates
    ]


def _rows(one: Shown, now: datetime) -> list[tuple[str, str]]:
    facts = one.facts
    days = facts.days_left(now)
    return [
        ("file", str(one.path)),
        ("subject", f"{facts.subject} (an authority)" if facts.is_authority else facts.subject),
        ("names", ", ".join(facts.names) or "-"),
        ("issuer", facts.issuer),
        ("validity", f"{_day(facts.starts)} to {_day(facts.ends)}"),
        ("state", f"{facts.state(now)}, {days} days left" if days >= 0 else facts.state(now)),
        ("sha-256", facts.fingerprint),
    ]


def _day(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC")
