"""API keys in a file: read whole, replaced whole, changed by one writer at a time."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.shared.access.key_record import KeyRecord, record_of, told_of

VERSION = 1
MODE = 0o600
MAX_BYTES = 64 * 2**20
_OTHERS_MAY_WRITE = 0o022


class BadKeyFile(Exception):
    """A file that cannot be used; the text names it and says why."""


def read_keys(path: Path) -> tuple[KeyRecord, ...]:
    """All keys, the revoked and the expired ones too.

    Raises:
        BadKeyFile: it is not there, is no file of keys, or others than its owner may write it.
    """
    try:
        status = path.stat()
        if status.st_mode & _OTHERS_MAY_WRITE:
            raise BadKeyFile(f"{path} must be writable by its owner alone: chmod 600 {path}")
        if status.st_size > MAX_BYTES:
            raise BadKeyFile(f"{path} must be at most {MAX_BYTES} bytes, has {status.st_size}")
        told = json.loads(path.read_bytes())
    except OSError as error:
        raise BadKeyFile(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadKeyFile(f"{path} is no JSON") from error
    return _records(path, told)


def _records(path: Path, told: Any) -> tuple[KeyRecord, ...]:
    version = told.get("version") if isinstance(told, dict) else None
    if version != VERSION:
        raise BadKeyFile(f"{path} must be a file of keys of version {VERSION}")
    try:
        records = tuple(map(record_of, told["keys"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadKeyFile(f"{path} has a key that cannot be read: {error}") from error
    _check_apart(path, records)
    return records


def _check_apart(path: Path, records: Sequence[KeyRecord]) -> None:
    for name in ("key_id", "digest"):
        if len({getattr(record, name) for record in records}) < len(records):
            raise BadKeyFile(f"{path} must not have two keys with one {name}")


@contextmanager
def changing_keys(path: Path) -> Iterator[list[KeyRecord]]:
    """The keys, to be changed in the block; then they take the place of the file's, mode 0600.

    Others who change them wait; readers see the file from before or from after. Without a file
    there are no keys yet; without its folder that is made.

    Raises:
        BadKeyFile: what is there is no file of keys, or what it became is none; it stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        records = list(read_keys(path)) if path.exists() else []
        yield records
        _check_apart(path, records)
        _replace(path, records)
        os.fsync(folder)
    finally:
        os.close(folder)


def _replace(path: Path, records: Iterable[KeyRecord]) -> None:
    told = {"version": VERSION, "keys": [told_of(record) for record in records]}
    data = (json.dumps(told, indent=1) + "\n").encode()
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
