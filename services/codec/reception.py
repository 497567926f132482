"""Who is let in by the doors of a codec, and who is sent away at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.codec.open_requests import OpenRequests
from services.codec.protocols.reply import Refusal
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.repeats import Repeats, Told
from services.codec.retry import spread
from services.shared.errors import Overloaded, ServiceError, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class SentAway:
    """An answer for one who came too early: what was told before, with the time that is left."""

    refusal: Refusal
    error: ServiceError
    request_id: str
    retry_after_s: float


class Reception:
    """Decides before a request for an answer is read.

    Nobody is refused for having been refused before: those who come too early only get their
    refusal with less ado while there would be one.

    Args:
        room: why no request is taken now, whatever it asks; None while they are.
        repeats: who was told to come later.
        draw: a random number from 0 to 1.
        open_requests: of both doors.
    """

    def __init__(
        self,
        room: Callable[[], ServiceError | None],
        repeats: Repeats,
        draw: Callable[[], float],
        open_requests: OpenRequests,
    ) -> None:
        self._room = room
        self._repeats = repeats
        self._draw = draw
        self.open_requests = open_requests

    def sent_away(self, caller: bytes, protocol: WireProtocol) -> SentAway | None:
        """The answer for a caller who comes again too early while there still is no room."""
        told = self._repeats.early(caller) if self._refusal() is not None else None
        if told is None:
            return None
        return SentAway(
            refusal=_in_words_of(protocol, told),
            error=told.error,
            request_id=told.request_id,
            retry_after_s=spread(self._repeats.left_s(told), self._draw()),
        )

    def check(self) -> None:
        """Raises the ServiceError that refuses a request now."""
        refusal = self._refusal()
        if refusal is not None:
            raise refusal

    def note(self, caller: bytes, error: ServiceError, request_id: str) -> None:
        """Remembers a refusal that the caller was told, if coming later may help."""
        if isinstance(error, (Overloaded, Unavailable)):
            self._repeats.tell(caller, error, request_id)

    def _refusal(self) -> ServiceError | None:
        return self.open_requests.refusal() or self._room()


def _in_words_of(protocol: WireProtocol, told: Told) -> Refusal:
    refusal = told.refusals.get(protocol.name)
    if refusal is None:
        refusal = told.refusals[protocol.name] = protocol.refusal(told.error, told.request_id)
    return refusal
