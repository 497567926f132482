"""Callers who were told to come later and come sooner."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from services.codec.protocols.reply import Refusal
from services.codec.retry import UNKNOWN_S
from services.shared.access.caller import Caller
from services.shared.access.shown import Shown
from services.shared.errors import ServiceError

SIZE = 10_000
PERIOD_S = 10.0
"""One log line for each caller and period tells how often it was refused without one."""

_KEY = secrets.token_bytes(32)
"""Digests of callers mean nothing outside this process."""

_log = logging.getLogger(__name__)


class Clock(Protocol):
    """Seconds from any beginning; an event loop is one."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> object: ...


@dataclass(slots=True)
class Told:
    """What a caller was told when it was refused, and how often it came too early since.

    Attributes:
        request_id: of the request that was refused; the log has it.
        not_before: on the clock.
        refusals: the error in each protocol's words, once somebody needed them.
        unlogged: refusals that the log does not tell of yet.
    """

    error: ServiceError
    request_id: str
    not_before: float
    refusals: dict[str, Refusal] = field(default_factory=dict)
    unlogged: int = 0


class Repeats:
    """Bounded: who was told longest ago is forgotten first."""

    def __init__(self, clock: Clock, size: int = SIZE) -> None:
        self._clock = clock
        self._size = size
        self._told: OrderedDict[bytes, Told] = OrderedDict()

    def tell(self, caller: bytes, error: ServiceError, request_id: str) -> None:
        """The caller was refused, and told when to come again."""
        self._forget(caller)
        if len(self._told) >= self._size:
            self._forget(next(iter(self._told)))
        wait_s = UNKNOWN_S if error.retry_after_s is None else error.retry_after_s
        self._told[caller] = Told(error, request_id, self._clock.time() + wait_s)

    def early(self, caller: bytes, kind: type[ServiceError]) -> Told | None:
        """What the caller was told, if it should not be here yet; counts the refusal.

        Args:
            caller: see `caller_of`.
            kind: of the error that it would be told now; one of another kind is none to repeat.
        """
        told = self._told.get(caller)
        if told is None or type(told.error) is not kind or self._clock.time() >= told.not_before:
            return None
        if not told.unlogged:
            self._clock.call_later(PERIOD_S, lambda: self._log(caller, told))
        told.unlogged += 1
        return told

    def left_s(self, told: Told) -> float:
        return max(0.0, told.not_before - self._clock.time())

    def close(self) -> None:
        """Logs what was not logged yet."""
        for caller in list(self._told):
            self._forget(caller)

    def _forget(self, caller: bytes) -> None:
        told = self._told.pop(caller, None)
        if told is not None:
            self._log(caller, told)

    def _log(self, caller: bytes, told: Told) -> None:
        count, told.unlogged = told.unlogged, 0
        if count:
            fields = {
                "caller": caller.hex(),
                "refused": count,
                "error": type(told.error).__name__,
                "request_id": told.request_id,
            }
            _log.info("refused again, too early", extra={"fields": fields})


def caller_of(caller: Caller, shown: Shown, address: str) -> bytes:
    """A digest of the tenant and the key; where nobody needs one, of what is shown all the same.

    Who shows nothing is known by the address.
    """
    if caller.key_id is not None:
        name = f"{caller.tenant} {caller.key_id}"
    else:
        name = next(iter((*shown.authorization, *shown.api_key)), "") or address
    return blake2b(name.encode(errors="surrogateescape"), key=_KEY, digest_size=8).digest()
