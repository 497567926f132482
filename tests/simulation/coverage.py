"""What must happen in some of many worlds: without it they would test less than they say."""

from __future__ import annotations

from collections import Counter

from services.router.fleet.ejection import Cause
from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import CacheMiss, CancelReason
from tests.simulation.faults.catalogue import FAULTS
from tests.simulation.refusals import REFUSALS

CODES = (
    Code.UNAVAILABLE,
    Code.RESOURCE_EXHAUSTED,
    Code.DEADLINE_EXCEEDED,
    Code.NOT_FOUND,
    Code.INVALID_ARGUMENT,
)

REASONS = (
    CancelReason.CLIENT_GONE,
    CancelReason.DEADLINE,
    CancelReason.MOVED,
    CancelReason.UNSPECIFIED,
)

MISSES = (
    CacheMiss.ABSENT,
    CacheMiss.EVICTED,
    CacheMiss.TIMEOUT,
    CacheMiss.CHECKSUM,
    CacheMiss.OFF,
    CacheMiss.UNREACHABLE,
    CacheMiss.NO_ROOM,
)

EXPECTED = (
    *(f"fault {name}" for name in FAULTS),
    *(f"status {status.value}" for status in Status),
    *(f"code {code.name}" for code in CODES),
    *(f"refusal {name}" for name in REFUSALS),
    *(f"ejected for {cause}" for cause in Cause),
    *(f"cancelled: {reason.name}" for reason in REASONS),
    *(f"cache miss {cause.name}" for cause in MISSES),
    *(f"a prefill {how}" for how in ("finished", "failed", "cancelled")),
    "a peer",
    "a lease expired",
    "a lease was released",
    "leased blocks",
    "cached tokens of a peer",
    "a preemption",
    "a retry",
    "breach of the protocol",
    "cached tokens",
    "late events of what was lost",
    "late events of what was cancelled",
    "lost block events",
)


def never_seen(seen: Counter[str]) -> list[str]:
    return [what for what in EXPECTED if not seen[what]]
