"""The certificates that an operator's commands show, and how they call with them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

from services.launcher.up_options import DEFAULT_KEYS
from services.shared.access.loopback import is_loopback
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.dial import dialling, in_the_clear

CERTIFICATES = "certs"
"""The folder below that of keys where `tokenway up` makes certificates."""

ADMIN = "admin"
VARIABLE = "TOKENWAY_CERTIFICATES"
SERVICE_VARIABLE = "TOKENWAY_SECURITY__CERTIFICATES"
"""The same for a service."""

NONE = "none"


@dataclass(frozen=True, slots=True)
class Calling:
    """How services are called.

    Attributes:
        certificates: the folder with what is shown; None calls in the clear.
        name: that the other end must carry in its certificate.
    """

    certificates: Path | None
    name: str

    def dial(self, address: str) -> grpc.aio.Channel:
        """A channel to `host:port`, which the caller closes. Raises BadCertificates."""
        if self.certificates is None:
            return in_the_clear(address)
        return dialling(partial(read_certificates, self.certificates), self.name)(address)


def own_certificates(
    said: str | None, at: str, environ: Mapping[str, str], keys: Path = DEFAULT_KEYS
) -> Path | None:
    """The folder with what to show at `host:port`; None: nothing, the call is in the clear.

    What is said goes before TOKENWAY_CERTIFICATES, and where neither says anything those count
    that `tokenway up` made, on this machine alone.
    """
    if told := said or environ.get(VARIABLE):
        return None if told == NONE else Path(told)
    made = keys / CERTIFICATES / ADMIN
    return made if is_loopback(at.rpartition(":")[0]) and made.is_dir() else None


def add_certificates(parser: argparse.ArgumentParser) -> None:
    """The option of every command that calls a service."""
    parser.add_argument(
        "--certificates",
        metavar="DIR",
        help=f"with ours, as `tokenway certs` makes them; {NONE}: in the clear ({VARIABLE}, or "
        f"{DEFAULT_KEYS / CERTIFICATES / ADMIN} for services of this machine)",
    )
