"""What serves token streams behind the wire: an engine, or a router before engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.shared.stream.events import Cancel, Sink
from services.shared.stream.generation import Generation
from services.shared.stream.load import Load


@dataclass(frozen=True, slots=True)
class Submission:
    """A generation, the W3C trace context it came with, and where its events go.

    The sink is called on the event loop's thread, in order, after `submit` returned, and not after
    the cancel.
    """

    generation: Generation
    traceparent: str
    sink: Sink


class TokenSource(Protocol):
    """Takes generations. Both calls return at once and run on the event loop's thread."""

    def submit(self, submission: Submission) -> Cancel:
        """Starts a generation and returns what cancels it.

        Raises:
            ServiceError: it is not taken; the sink is not called.
        """

    def load(self) -> Load: ...
