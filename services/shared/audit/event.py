"""One line of the audit file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from services.shared.plain_text import plain

MAX_CHARACTERS = 300

DONE, REFUSED = "done", "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEvent:
    """What somebody did, or was not let do.

    Args:
        action: in a word or two.
        who: `spiffe://…` of a certificate, `key:…`, `user:…` of the system, or `address:…` where
            nothing else is known.
        what: of the action.
        outcome: `done`, `refused`, or the kind of the error.
        address: where the caller was.
        times: how often.
    """

    action: str
    who: str
    outcome: str
    what: str = ""
    address: str | None = None
    request_id: str | None = None
    trace_id: str | None = None
    times: int = 1


def told_of(service: str, event: AuditEvent) -> dict[str, Any]:
    """The event as it is now, as one object; what others chose is on one line and printable."""
    texts = {
        "service": service,
        "action": event.action,
        "who": event.who,
        "address": event.address,
        "what": event.what,
        "outcome": event.outcome,
        "request_id": event.request_id,
        "trace_id": event.trace_id,
    }
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = {name: plain(text, MAX_CHARACTERS) for name, text in texts.items() if text}
    return {"ts": at, **told, **({"times": event.times} if event.times != 1 else {})}


def line_of(told: dict[str, Any]) -> bytes:
    return json.dumps(told).encode() + b"\n"
