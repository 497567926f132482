"""What serves token streams behind the wire: an engine, or a router before engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from services.shared.stream.block_changes import BlockChanges
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


class BlockWatcher(Protocol):
    """Follows the addresses of the blocks that can be found at a source."""

    def found(self, addresses: Iterable[bytes]) -> None:
        """All of them; what was told before is void."""

    def changed(self, changes: BlockChanges) -> None:
        """What became of them since."""


class BlockSource(Protocol):
    """A source that has KV blocks of its own. Runs and calls on the event loop's thread."""

    def watch(self, watcher: BlockWatcher) -> None:
        """Tells soon all that can be found, then changes; all once more for each further call."""

    def unwatch(self, watcher: BlockWatcher) -> None:
        """Tells it nothing more."""
