"""The key of this machine's own tenant: made by `tokenway up`, shown by the other commands."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from services.launcher.keys_command import create_key
from services.launcher.local_audit import audit_file, note_here
from services.launcher.up_options import DEFAULT_KEYS
from services.shared.access.key_file import MODE, read_keys
from services.shared.access.key_ring import KeyRing
from services.shared.access.loopback import is_loopback
from services.shared.access.refused import Refused
from services.shared.audit.event import DONE

KEYS = "keys.json"
KEY = "dev.key"
TENANT = "dev"
VARIABLE = "TOKENWAY_KEY"


def make_dev_key(folder: Path) -> None:
    """Has a key that is taken in `dev.key`, and its digest in `keys.json`, in `folder`.

    Raises BadKeyFile when other keys are there that cannot be read.
    """
    keys, key = folder / KEYS, folder / KEY
    if _is_taken(keys, key):
        return
    made = create_key(keys, TENANT, "made by tokenway up")
    what = f"{made.key_id} of tenant {TENANT}"
    note_here(audit_file(keys, os.environ), "up", "key create", what, DONE)
    beside = folder / f".{KEY}.{secrets.token_hex(8)}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(descriptor, "w") as file:
        file.write(made.text)
    beside.replace(key)


def _is_taken(keys: Path, key: Path) -> bool:
    if not keys.exists() or not key.exists():
        return False
    with suppress(Refused):
        return bool(KeyRing(read_keys(keys)).caller(key.read_text().strip(), datetime.now(UTC)))
    return False


def own_key(url: str, environ: Mapping[str, str], folder: Path = DEFAULT_KEYS) -> str | None:
    """What to show at `url`: TOKENWAY_KEY, else the development key where it is of this machine.

    No other machine gets to see that. None: there is none.
    """
    if told := environ.get(VARIABLE):
        return told
    host = urlsplit(url).hostname or ""
    file = folder / KEY
    return file.read_text().strip() if is_loopback(host) and file.is_file() else None
