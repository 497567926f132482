"""Names of requests."""

from __future__ import annotations

import re
import secrets

_GOOD_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def request_id_from(given: str | None) -> str:
    """The caller's name for the request where it is short and plain, or a new one."""
    if given is not None and _GOOD_ID.fullmatch(given):
        return given
    return f"req_{secrets.token_hex(12)}"
