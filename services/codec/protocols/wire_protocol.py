"""A public protocol: pure functions between its bytes and what the codec works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.codec.events import OutputEvent
from services.codec.protocols.reading import Reading
from services.codec.protocols.reply import Refusal, Reply
from services.codec.request import Request
from services.shared.errors import ServiceError


class EventStream(Protocol):
    """The state machine of one streamed answer."""

    def frames(self, event: OutputEvent) -> list[bytes]:
        """The server-sent events that tell `event`, each complete."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WireProtocol:
    """One protocol.

    Args:
        name: stands in logs and spans.
        parse: a body to a request; raises InvalidRequest.
        stream: makes the state machine of a streamed answer.
        whole: all events of an answer, without Error, as one body.
        refusal: an error as this protocol tells it, with the request ID.
    """

    name: str
    parse: Callable[[Reading, bytes], Request]
    stream: Callable[[Reply], EventStream]
    whole: Callable[[Reply, Sequence[OutputEvent]], bytes]
    refusal: Callable[[ServiceError, str], Refusal]
