"""The router's end of the sessions to one replica; the generations are kept by the real code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from services.shared.errors import Code, Unavailable
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Cancel, CancelReason, Event, Failed, Sink
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.open_streams import OpenStreams
from services.shared.stream.source import Submission
from tests.simulation import network
from tests.simulation.network import Connection, Frame
from tests.simulation.virtual_time import VirtualLoop

FIRST_BACKOFF_S = 0.05
LAST_BACKOFF_S = 2.0
LOST = Failed(code=Code.UNAVAILABLE, message="the session to the replica ended", retryable=True)
REMEMBERED = 16

Receive = Callable[[Frame], None]
Down = Callable[[], None]


class Dial(Protocol):
    """Makes a connection to the replica; None while nobody is there."""

    def __call__(self, receive: Receive, down: Down) -> Connection | None: ...


class Hearer(Protocol):
    """Is told what a session brings beside generations' events."""

    def came_up(self) -> None: ...

    def load(self, load: Load | None) -> None: ...

    def blocks(self, events: BlockEvents) -> None: ...

    def fault(self, fault: str) -> None: ...


class Witness(Protocol):
    """Sees what passes between the router and this replica, before the router does."""

    def submitted(self, submission: Submission) -> None: ...

    def refused(self, submission: Submission) -> None: ...

    def cancelled(self, submission: Submission) -> None: ...

    def brought(self, submission: Submission, event: Event) -> None: ...


class Session:
    """A token source that is a replica far away. It connects again whenever it is down.

    Attributes:
        past: sinks of generations that this session had and lost, the latest last.
    """

    def __init__(
        self, name: str, loop: VirtualLoop, dial: Dial, hearer: Hearer, witness: Witness
    ) -> None:
        self.name = name
        self._loop = loop
        self._dial = dial
        self._hearer = hearer
        self._witness = witness
        self._connection: Connection | None = None
        self._load: Load | None = None
        self._streams = OpenStreams(name, self._send_cancel, hearer.fault)
        self._backoff_s = FIRST_BACKOFF_S
        self._closed = False
        self.past: deque[tuple[Submission, Sink]] = deque(maxlen=REMEMBERED)

    @property
    def connection(self) -> Connection | None:
        return self._connection

    def submit(self, submission: Submission) -> Cancel:
        self._witness.submitted(submission)
        if self._load is None or self._connection is None:
            self._witness.refused(submission)
            raise Unavailable(f"{self.name} is not reachable")
        sink = partial(self._bring, submission)
        stream_id = self._streams.open(sink, len(submission.generation.generated_ids))
        self.past.append((submission, submission.sink))
        self._connection.commands.send(network.Submit(stream_id, submission))

        def cancel(reason: CancelReason) -> None:
            self._witness.cancelled(submission)
            self._streams.cancel(stream_id, reason)

        return cancel

    def load(self) -> Load:
        return self._load or Load(state=ReplicaState.STARTING)

    def watch_blocks(self) -> None:
        if self._connection is not None:
            self._connection.commands.send(network.WatchBlocks())

    def connect(self) -> None:
        """Tries until it is up."""
        if self._closed:
            return
        self._connection = self._dial(self._receive, self._down)
        if self._connection is None:
            self._again()

    def close(self) -> None:
        """For good, and without a word to the generations: nobody hears them any more."""
        self._closed = True
        connection, self._connection = self._connection, None
        self._load = None
        self._streams = OpenStreams(self.name, self._send_cancel, self._hearer.fault)
        if connection is not None:
            connection.cut()

    def inject(self, frame: Frame) -> None:
        """A frame that the replica did not send, by the connection of now."""
        if self._load is not None:
            self._receive(frame)

    def _again(self) -> None:
        self._loop.call_later(self._backoff_s, self.connect)
        self._backoff_s = min(2 * self._backoff_s, LAST_BACKOFF_S)

    def _receive(self, frame: Frame) -> None:
        if frame.load is not None:
            is_new, self._load = self._load is None, frame.load
            self._hearer.load(frame.load)
            if is_new:
                self._backoff_s = FIRST_BACKOFF_S
                self._hearer.came_up()
        self._streams.receive(frame.events)
        if frame.blocks is not None:
            self._hearer.blocks(frame.blocks)

    def _down(self) -> None:
        if self._closed:
            return
        self._connection = None
        if self._load is not None:
            self._load = None
            self._hearer.load(None)
        self._streams.lose(LOST)
        self._again()

    def _bring(self, submission: Submission, event: Event) -> None:
        self._witness.brought(submission, event)
        submission.sink(event)

    def _send_cancel(self, stream_id: int, reason: CancelReason) -> None:
        if self._connection is not None:
            self._connection.commands.send(network.Cancel(stream_id, reason))
