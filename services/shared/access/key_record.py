"""What is kept of an API key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from services.shared.access.api_key import DIGEST_BYTES
from services.shared.access.tenant_name import tenant_name

MAX_NAME_CHARACTERS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRecord:
    """A key without its secret. Times are in UTC.

    Args:
        key_id: the visible beginning of the key.
        digest: of the whole key.
        tenant: whose requests are those that show it.
        name: what people call it.
        created: when it was made.
        expires: from when on it is not taken; None never.
        revoked: since when it is not taken, whatever `expires` says; None where it is.
    """

    key_id: str
    digest: bytes
    tenant: str
    name: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    def __post_init__(self) -> None:
        """Raises ValueError naming the field."""
        tenant_name(self.tenant)
        if len(self.name) > MAX_NAME_CHARACTERS or not (self.name or " ").isprintable():
            raise ValueError(
                f"name must be at most {MAX_NAME_CHARACTERS} printable characters, "
                f"got {self.name[:MAX_NAME_CHARACTERS]!r}"
            )
        if len(self.digest) != DIGEST_BYTES:
            raise ValueError(f"digest must have {DIGEST_BYTES} bytes, got {len(self.digest)}")

    def fault(self, now: datetime) -> str | None:
        """Why the key is not taken at `now`; None while it is."""
        if self.revoked is not None:
            return "revoked key"
        if self.expires is not None and now >= self.expires:
            return "expired key"
        return None


def record_of(told: Mapping[str, Any]) -> KeyRecord:
    """A record as a file has it. Raises ValueError or KeyError for one that is none."""
    texts = {name: _text(told, name) for name in ("id", "digest", "tenant", "name", "created")}
    return KeyRecord(
        key_id=texts["id"],
        digest=bytes.fromhex(texts["digest"]),
        tenant=texts["tenant"],
        name=texts["name"],
        created=_time(texts["created"]),
        expires=_time_or_none(told, "expires"),
        revoked=_time_or_none(told, "revoked"),
    )


def told_of(record: KeyRecord) -> dict[str, Any]:
    """The record as a file has it."""
    return {
        "id": record.key_id,
        "digest": record.digest.hex(),
        "tenant": record.tenant,
        "name": record.name,
        "created": record.created.isoformat(),
        "expires": None if record.expires is None else record.expires.isoformat(),
        "revoked": None if record.revoked is None else record.revoked.isoformat(),
    }


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {type(value).__name__}")  # noqa: TRY004
    return value


def _time_or_none(told: Mapping[str, Any], name: str) -> datetime | None:
    return None if told.get(name) is None else _time(_text(told, name))


def _time(text: str) -> datetime:
    """A time without a zone would mean something else on each machine."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"times must name their zone, got {text!r}")
    return time.astimezone(UTC)
