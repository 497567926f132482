"""`tokenway keys`: makes API keys, lists them, takes them back."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from services.launcher.books import AUDIT_FILE
from services.launcher.local_audit import audit_file, note_here
from services.launcher.terminal import show
from services.launcher.time_span import time_span
from services.shared.access.api_key import ApiKey, digest_of
from services.shared.access.key_file import BadKeyFile, changing_keys, read_keys
from services.shared.access.key_record import KeyRecord, told_of
from services.shared.audit.event import DONE
from services.shared.plain_text import plain

DEFAULT_FILE = Path(".tokenway/keys.json")
MAX_FAULT = 500
LEAST_WIDTH = 120
"""A narrower terminal breaks lines, rather than that we cut what stands in them."""


class NoSuchKey(Exception):
    """The file has no key of that name."""


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    try:
        what = _ACTIONS[arguments.action](arguments)
    except (BadKeyFile, NoSuchKey, OSError, ValueError) as error:
        sys.stderr.write(f"tokenway keys: {plain(str(error), MAX_FAULT)}\n")
        _note(arguments, str(error), type(error).__name__)
        return 1
    _note(arguments, what, DONE)
    return 0


def _note(arguments: argparse.Namespace, what: str, outcome: str) -> None:
    """Changes of keys, done or tried."""
    if arguments.action != "list":
        path = arguments.audit_file or audit_file(arguments.file, os.environ)
        note_here(path, "keys", f"key {arguments.action}", what, outcome)


def create_key(file: Path, tenant: str, name: str, expires: datetime | None = None) -> ApiKey:
    """Makes a key; its text is nowhere but in what is given back.

    Raises BadKeyFile, or ValueError for a tenant or a name that cannot be.
    """
    key = ApiKey.new()
    record = KeyRecord(
        key_id=key.key_id,
        digest=digest_of(key.text),
        tenant=tenant,
        name=name,
        created=_now(),
        expires=expires,
    )
    with changing_keys(file) as records:
        records.append(record)
    return key


def _create(arguments: argparse.Namespace) -> str:
    key = create_key(arguments.file, arguments.tenant, arguments.name, arguments.expires)
    sys.stderr.write(f"{key.key_id} is a key of tenant {arguments.tenant}; it is told only here:\n")
    sys.stdout.write(f"{key.text}\n")
    return f"{key.key_id} of tenant {arguments.tenant}"


def _list(arguments: argparse.Namespace) -> str:
    records = read_keys(arguments.file)
    if arguments.json:
        told = [{**told_of(record), "state": _state(record)} for record in records]
        for entry in told:
            del entry["digest"]
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
        return ""
    table = Table(box=None)
    for column in ("key", "tenant", "name", "created", "expires", "state"):
        table.add_column(column)
    for record in records:
        expires = "never" if record.expires is None else _day(record.expires)
        row = (record.key_id, record.tenant, record.name, _day(record.created), expires)
        table.add_row(*row, _state(record))
    show(table, LEAST_WIDTH)
    return ""


def _revoke(arguments: argparse.Namespace) -> str:
    _change(arguments, lambda record: replace(record, revoked=record.revoked or _now()))
    sys.stdout.write(f"{arguments.key} is revoked\n")
    return str(arguments.key)


def _expire(arguments: argparse.Namespace) -> str:
    expires = arguments.at
    _change(arguments, lambda record: replace(record, expires=expires))
    told = f"{arguments.key} expires {'never' if expires is None else _day(expires)}"
    sys.stdout.write(f"{told}\n")
    return told


def _change(arguments: argparse.Namespace, change: Callable[[KeyRecord], KeyRecord]) -> None:
    read_keys(arguments.file)  # without a file there is nothing to change, and none is made
    with changing_keys(arguments.file) as records:
        named = [at for at, record in enumerate(records) if record.key_id == arguments.key]
        if not named:
            raise NoSuchKey(f"{arguments.file} has no key {arguments.key!r}; see `list`")
        records[named[0]] = change(records[named[0]])


def _state(record: KeyRecord) -> str:
    return (record.fault(_now()) or "valid").removesuffix(" key")


def _day(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC")


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _moment(text: str) -> datetime | None:
    """`never`, a length of time from now like 30d, or a time with its zone."""
    if text == "never":
        return None
    try:
        span = time_span(text)
        if span is not None:
            return _now() + span
        time = datetime.fromisoformat(text)
    except (OverflowError, ValueError):
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"must be never, like 90s, 12h or 30d, or like 2030-01-31T12:00Z, got {text!r}"
        )
    return time.astimezone(UTC)


_ACTIONS: dict[str, Callable[[argparse.Namespace], str]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
    "expire": _expire,
}
"""Each tells what the audit file is to say of it."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tokenway keys", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--file", type=Path, default=DEFAULT_FILE, help=f"of the keys ({DEFAULT_FILE})"
    )
    common.add_argument(
        "--audit-file", type=Path, help=f"that tells of changes ({AUDIT_FILE}, or beside the keys)"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", parents=[common], help="makes a key and prints it, once")
    create.add_argument("--tenant", required=True, help="whose requests are those that show it")
    create.add_argument("--name", default="", help="what people call it")
    create.add_argument("--expires", type=_moment, help="never, 30d, 2030-01-31T12:00Z (never)")
    listed = actions.add_parser("list", parents=[common], help="all keys, without their secrets")
    listed.add_argument("--json", action="store_true", help="for programs")
    revoke = actions.add_parser("revoke", parents=[common], help="takes a key back for good")
    expire = actions.add_parser("expire", parents=[common], help="sets when a key ends")
    expire.add_argument("--at", type=_moment, default="0s", help="never, 30d, ... (now)")
    for action in (revoke, expire):
        action.add_argument("key", help="its visible beginning, for example tw_ab12cd34")
    return parser
