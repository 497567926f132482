"""Refused access in the log: told at once, and counted when it goes on."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from services.shared.audit.audit import NO_AUDIT, Audit
from services.shared.audit.event import REFUSED, AuditEvent
from services.shared.request_id import request_id_from

PERIOD_S = 10.0
"""One line at once and one at its end tell of one address and cause."""

SIZE = 1000
"""Addresses and causes that are told apart in a period; what comes beyond is counted together."""

OTHERS = "others"

_log = logging.getLogger(__name__)


class Kind(StrEnum):
    """Causes as they are counted."""

    NO_KEY = "no_key"
    UNKNOWN_KEY = "unknown_key"
    EXPIRED_KEY = "expired_key"
    REVOKED_KEY = "revoked_key"
    EXPIRED_TOKEN = "expired_token"  # noqa: S105 no password
    WRONG_TOKEN = "wrong_token"  # noqa: S105 no password
    ADDRESS = "address"
    ROLE = "role"
    OTHER = "other"


_KINDS: dict[str, Kind] = {kind.value: kind for kind in Kind}


class Clock(Protocol):
    """An event loop is one."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> object: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """What is told together.

    Args:
        address: of the caller.
        cause: one of a few.
        key_id: of a key that was known.
        kind: under which it is counted; None: the one that the cause tells.
    """

    address: str
    cause: str
    key_id: str | None = None
    kind: Kind | None = None


@dataclass(slots=True)
class _Told:
    request_id: str
    again: int = 0


class Denials:
    """Bounded in memory and in lines, however many are refused.

    Args:
        clock: tells when a period is over.
        audit: gets the same as the log.
        size: addresses and causes that are told apart.

    Attributes:
        counts: since the start.
    """

    def __init__(self, clock: Clock, audit: Audit = NO_AUDIT, size: int = SIZE) -> None:
        self._clock = clock
        self._audit = audit
        self._size = size
        self._told: dict[Why, _Told] = {}
        self.counts: Counter[Kind] = Counter(dict.fromkeys(Kind, 0))

    def note(self, why: Why) -> str:
        """The request ID under which the log tells of the refusal.

        It is ours: several callers may get it, who must not read each other's.
        """
        self.counts[why.kind or _kind(why.cause)] += 1
        if why not in self._told and len(self._told) >= self._size:
            why = Why(address=OTHERS, cause="many")
        told = self._told.get(why)
        if told is not None:
            told.again += 1
            return told.request_id
        request_id = request_id_from(None)
        self._told[why] = _Told(request_id)
        self._clock.call_later(PERIOD_S, lambda: self._end(why))
        _log.warning("access refused", extra={"fields": _fields(why, request_id)})
        self._audit.note(_event(why, request_id, 1))
        return request_id

    def close(self) -> None:
        """Logs what was not logged yet."""
        for why in list(self._told):
            self._end(why)

    def _end(self, why: Why) -> None:
        told = self._told.pop(why, None)
        if told is not None and told.again:
            fields = {**_fields(why, told.request_id), "refused": told.again}
            _log.warning("access refused again", extra={"fields": fields})
            self._audit.note(_event(why, told.request_id, told.again))


def _kind(cause: str) -> Kind:
    other = Kind.WRONG_TOKEN if "token" in cause else Kind.OTHER
    return _KINDS.get(cause.replace(" ", "_"), other)


def _fields(why: Why, request_id: str) -> dict[str, str]:
    key = {} if why.key_id is None else {"key": why.key_id}
    return {"address": why.address, "cause": why.cause, "request_id": request_id, **key}


def _event(why: Why, request_id: str, times: int) -> AuditEvent:
    return AuditEvent(
        action="access",
        who=f"address:{why.address}" if why.key_id is None else f"key:{why.key_id}",
        what=why.cause,
        outcome=REFUSED,
        address=why.address,
        request_id=request_id,
        times=times,
    )
