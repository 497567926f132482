"""Names of tenants: short and plain, since they stand in logs, metrics and addresses of blocks."""

from __future__ import annotations

import string

MAX_CHARACTERS = 64
_PLAIN = frozenset(string.ascii_letters + string.digits + "._-")


def tenant_name(text: object) -> str:
    """`text` where it can name a tenant; raises ValueError that begins with `tenant`."""
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CHARACTERS or not {*text} <= _PLAIN:
        raise ValueError(
            f"tenant must be 1 to {MAX_CHARACTERS} letters, digits, '.', '_' or '-', "
            f"got {str(text)[:MAX_CHARACTERS]!r}"
        )
    return text
