"""Who is let in by the doors of a codec, and who is sent away at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.codec.listeners import Listeners
from services.codec.open_requests import OpenRequests
from services.codec.protocols.reply import Refusal
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.repeats import Repeats, Told
from services.codec.retry import spread
from services.shared.access.caller import Caller
from services.shared.access.guard import Denial
from services.shared.access.opening import Access
from services.shared.access.shown import Shown
from services.shared.errors import Overloaded, RateLimited, ServiceError, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class SentAway:
    """An answer for one who came without a key, or too early: what was told before, and when."""

    refusal: Refusal
    error: ServiceError
    request_id: str
    retry_after_s: float | None


class Reception:
    """Decides before a request for an answer is read.

    Nobody is refused for having been refused before: those who come too early only get their
    refusal with less ado while there would be one.

    Args:
        room: why no request is taken now, whatever it asks; None while they are.
        repeats: who was told to come later.
        draw: a random number from 0 to 1.
        open_requests: of both doors.
        access: knows who asks, and how much each may use.

    Attributes:
        listeners: hear of each request.
    """

    def __init__(
        self,
        room: Callable[[], ServiceError | None],
        repeats: Repeats,
        draw: Callable[[], float],
        open_requests: OpenRequests,
        access: Access,
    ) -> None:
        self._room = room
        self._repeats = repeats
        self._draw = draw
        self.open_requests = open_requests
        self.guard = access.guard
        self.quotas = access.quotas
        self.listeners = Listeners()

    def admit(self, shown: Shown, peer: str, protocol: WireProtocol) -> Caller | SentAway:
        """Whom to answer, or what to tell instead. `peer` is the address of the other end."""
        admitted = self.guard.admit(self.guard.found(shown), shown, peer)
        return denied(admitted, protocol) if isinstance(admitted, Denial) else admitted

    def sent_away(self, name: bytes, caller: Caller, protocol: WireProtocol) -> SentAway | None:
        """The answer for a caller who comes again too early while it still would be refused.

        Args:
            name: the caller's, see `caller_of`.
            caller: whose request it is.
            protocol: whose words it is told in.
        """
        refusal = self._refusal(caller)
        told = None if refusal is None else self._repeats.early(name, type(refusal))
        if told is None:
            return None
        self.listeners.figures.send_away(told.error)
        return SentAway(
            refusal=_in_words_of(protocol, told),
            error=told.error,
            request_id=told.request_id,
            retry_after_s=spread(self._repeats.left_s(told), self._draw()),
        )

    async def enter(self, caller: Caller, *, for_answer: bool) -> None:
        """A request counts, and raises the ServiceError that refuses it now.

        What is no answer of the model needs no room.
        """
        refusal = self._refusal(caller) if for_answer else None
        if refusal is not None:
            raise refusal
        await self.quotas.enter(caller.tenant)

    def note(self, name: bytes, error: ServiceError, request_id: str) -> None:
        """Remembers a refusal that the caller was told, if coming later may help."""
        if isinstance(error, (Overloaded, RateLimited, Unavailable)):
            self._repeats.tell(name, error, request_id)

    def _refusal(self, caller: Caller) -> ServiceError | None:
        return self.open_requests.refusal() or self.quotas.refusal(caller.tenant) or self._room()


def denied(denial: Denial, protocol: WireProtocol) -> SentAway:
    return SentAway(
        refusal=protocol.refusal(denial.error, denial.request_id),
        error=denial.error,
        request_id=denial.request_id,
        retry_after_s=None,
    )


def _in_words_of(protocol: WireProtocol, told: Told) -> Refusal:
    refusal = told.refusals.get(protocol.name)
    if refusal is None:
        refusal = told.refusals[protocol.name] = protocol.refusal(told.error, told.request_id)
    return refusal
