"""`tokenway certs`: makes certificates for services and operators, tells of them, renews them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from services.launcher.certs.authority import Expired
from services.launcher.certs.authority_folder import (
    STEPS,
    BadAuthority,
    make_authority,
    read_authority,
)
from services.launcher.certs.certificate_table import certificate_table, json_of, shown
from services.launcher.certs.issued import LIFE, RENEWED, issue, keep_issued
from services.launcher.certs.subject import Subject, subject
from services.launcher.terminal import show
from services.shared.tls.identity import Role

LEAST_WIDTH = 120
MAX_DAYS = 3650
ROLES = ", ".join(Role)


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    try:
        _ACTIONS[arguments.action](arguments)
    except (BadAuthority, Expired, OSError, ValueError) as error:
        sys.stderr.write(f"tokenway certs: {error}\n")
        return 1
    return 0


def _init(arguments: argparse.Namespace) -> None:
    authority = make_authority(arguments.folder, replace=arguments.replace)
    _say(f"made an authority in {arguments.folder}, until {authority.ends:%Y-%m-%d}")


def _issue(arguments: argparse.Namespace) -> None:
    subject_ = subject(arguments.role, arguments.name, tuple(arguments.host))
    issue(read_authority(arguments.ca), subject_, arguments.to, timedelta(arguments.days))
    ends = shown(arguments.to)[0].facts.ends
    _say(f"made {subject_.identity.uri} in {arguments.to}, until {ends:%Y-%m-%d}")


def _keep(arguments: argparse.Namespace) -> None:
    for folder in keep_issued(arguments.folder, map(_subject, arguments.subjects)):
        _say(f"made {folder}")


def _rotate(arguments: argparse.Namespace) -> None:
    authority = STEPS[arguments.step](arguments.folder)
    count = len(authority.trusted)
    _say(
        f"{arguments.folder} trusts {count} {'authorities' if count > 1 else 'authority'} now; "
        "issue all certificates again"
    )


def _show(arguments: argparse.Namespace) -> None:
    certificates = shown(arguments.path)
    if arguments.json:
        sys.stdout.write(json.dumps(json_of(certificates), indent=2) + "\n")
        return
    show(certificate_table(certificates), LEAST_WIDTH)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _subject(text: str) -> Subject:
    """`ROLE/NAME`, or a role alone, whose name is then the same."""
    role, _, name = text.partition("/")
    return subject(role, name or role)


_ACTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "init": _init,
    "issue": _issue,
    "keep": _keep,
    "rotate": _rotate,
    "show": _show,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tokenway certs", description=__doc__)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    init = actions.add_parser("init", help="makes an authority, which signs certificates")
    init.add_argument("folder", type=Path, metavar="DIR", help="for its certificate and its key")
    init.add_argument("--replace", action="store_true", help="even where one is; that is gone then")
    issued = actions.add_parser("issue", help="makes a certificate and a key, or new ones")
    issued.add_argument("role", metavar="ROLE", help=f"one of {ROLES}")
    issued.add_argument("name", metavar="NAME", help="which one of that role, for people and logs")
    issued.add_argument(
        "--ca", type=Path, required=True, metavar="DIR", help="folder of the authority"
    )
    issued.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="folder for what is made"
    )
    issued.add_argument(
        "--host", action="append", default=[], metavar="NAME", help="DNS name or address as well"
    )
    issued.add_argument(
        "--days", type=_days, default=LIFE.days, help=f"for which it counts ({LIFE.days})"
    )
    kept = actions.add_parser(
        "keep",
        help=f"an authority and certificates in one folder; makes what is missing or ends within "
        f"{RENEWED.days} days",
    )
    kept.add_argument("folder", type=Path, metavar="DIR", help="gets a folder ca and one per NAME")
    kept.add_argument("subjects", nargs="+", metavar="ROLE[/NAME]", help=f"roles: {ROLES}")
    rotate = actions.add_parser("rotate", help="goes on to another authority, in three steps")
    rotate.add_argument(
        "step",
        choices=STEPS,
        metavar="STEP",
        help="trust: makes another, trusted beside the one that signs; sign: the other signs; "
        "forget: only the one that signs is trusted. Issue all certificates after each",
    )
    rotate.add_argument("folder", type=Path, metavar="DIR", help="of the authority")
    show = actions.add_parser("show", help="what certificates say")
    show.add_argument("path", type=Path, metavar="DIR|FILE", help="of certificates")
    show.add_argument("--json", action="store_true", help="for programs")
    return parser


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_DAYS:
        raise argparse.ArgumentTypeError(f"must be between 1 and {MAX_DAYS}, got {text!r}")
    return int(text)
