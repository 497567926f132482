"""Settings of quotas that several codecs share."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from services.shared.bounds import within

MAX_PREFIX_CHARACTERS = 64
RENEWALS = 3
"""In the time of a lease; one that fails ends none."""

_PLAIN = frozenset(string.ascii_letters + string.digits + ":._-")


class OnFailure(StrEnum):
    """What counts while the store does not answer."""

    LOCAL = "local"
    ALLOW = "allow"
    REFUSE = "refuse"


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaSettings:
    """Where codecs count together what tenants use; without `redis_url` each counts alone.

    Args:
        redis_url: `redis://` or `rediss://`, `[user[:password]@]host[:port][/database]`.
        redis_password_file: a file with the password, instead of the one in the URL.
        redis_ca_file: authorities that vouch for a server behind `rediss://`; none, the system's.
        key_prefix: what all keys in the store begin with; codecs that have it alike share.
        timeout_ms: what one question to the store may take.
        on_failure: what counts while the store does not answer: `local`, each codec's own buckets
            with a part of the limits; `allow`, no limits; `refuse`, nobody with limits is answered.
        processes: how many codecs share, for `local`: each has so small a part.
        lease_s: seconds after which what a codec that died had put aside is settled.
    """

    redis_url: str | None = field(default=None, repr=False)
    redis_password_file: Path | None = None
    redis_ca_file: Path | None = None
    key_prefix: str = "tokenway:quotas"
    timeout_ms: int = 100
    on_failure: OnFailure = OnFailure.LOCAL
    processes: int = 1
    lease_s: float = 15.0

    def __post_init__(self) -> None:
        if self.redis_url is None:
            for name in ("redis_password_file", "redis_ca_file"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} must not be set without redis_url")
        if (
            not 0 < len(self.key_prefix) <= MAX_PREFIX_CHARACTERS
            or not {*self.key_prefix} <= _PLAIN
        ):
            raise ValueError(
                f"key_prefix must be 1 to {MAX_PREFIX_CHARACTERS} letters, digits, ':', '.', '_' "
                f"or '-', got {self.key_prefix[:MAX_PREFIX_CHARACTERS]!r}"
            )
        within("timeout_ms", self.timeout_ms, 1, 10_000)
        within("processes", self.processes, 1, 10_000)
        within("lease_s", self.lease_s, 1, 3600)
        if self.timeout_ms > 1000 * self.lease_s / RENEWALS:
            raise ValueError(
                f"timeout_ms must be <= {1000 * self.lease_s / RENEWALS:.0f}, a third of lease_s, "
                f"got {self.timeout_ms}"
            )
