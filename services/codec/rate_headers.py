"""A tenant's limits as response headers, in each protocol's words."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.retry import Header
from services.shared.access.quota import Quota, Share

KINDS = ("requests", "tokens")
FACTS = ("limit", "remaining", "reset")
NAMES = (
    *(f"x-ratelimit-{fact}-{kind}" for kind in KINDS for fact in FACTS),
    *(f"anthropic-ratelimit-{kind}-{fact}" for kind in KINDS for fact in FACTS),
)


def rate_headers(quota: Quota, protocol: WireProtocol) -> list[Header]:
    """Nothing of what has no limit."""
    shares = ((KINDS[0], quota.requests), (KINDS[1], quota.tokens))
    make = _anthropic if protocol is MESSAGES else _openai
    return [header for kind, share in shares if share is not None for header in make(kind, share)]


def _openai(kind: str, share: Share) -> list[Header]:
    values = (share.limit, share.remaining, _length(share.full_in_s))
    pairs = zip(FACTS, values, strict=True)
    return [(f"x-ratelimit-{fact}-{kind}".encode(), str(value).encode()) for fact, value in pairs]


def _anthropic(kind: str, share: Share) -> list[Header]:
    full_at = datetime.now(UTC) + timedelta(seconds=math.ceil(share.full_in_s))
    values = (share.limit, share.remaining, full_at.strftime("%Y-%m-%dT%H:%M:%SZ"))
    pairs = zip(FACTS, values, strict=True)
    return [
        (f"anthropic-ratelimit-{kind}-{fact}".encode(), str(value).encode())
        for fact, value in pairs
    ]


def _length(seconds: float) -> str:
    """As in `20ms`, `7s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(1000 * seconds)}ms"
    whole = math.ceil(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60}s"
