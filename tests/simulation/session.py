"""The router's end of the sessions to one replica; what it makes of frames is the real code's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from services.shared.errors import Code, Unavailable
from services.shared.stream.block_reader import BlockReader
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Cancel, CancelReason, Event, Failed, Finished
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.open_streams import OpenStreams
from services.shared.stream.source import Submission
from tests.simulation import network
from tests.simulation.judge import Judge
from tests.simulation.network import Connection, Frame
from tests.simulation.virtual_time import VirtualLoop

FIRST_BACKOFF_S = 0.05
LAST_BACKOFF_S = 2.0
LOST = Failed(code=Code.UNAVAILABLE, message="the session to the replica ended", retryable=True)
REMEMBERED = 16
NEXT_TURN_S = 1e-6

Receive = Callable[[Frame], None]
Down = Callable[[], None]


class Distant(Protocol):
    """Where a replica is."""

    @property
    def name(self) -> str: ...

    def dial(self, receive: Receive, down: Down) -> Connection | None:
        """A connection to it; None while nobody is there."""


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

    def settled(self) -> None: ...

    def cancelled(self, submission: Submission) -> None: ...

    def brought(self, submission: Submission, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Past:
    """A generation that the session had: it was `lost`, `cancelled`, or has `ended`."""

    submission: Submission
    how: str


@dataclass(frozen=True, slots=True)
class Tampered:
    """A frame that was spoilt for one stream."""

    frame: Frame
    stream_id: int


class Session:
    """A token source that is a replica far away. It connects again whenever it is down.

    Attributes:
        past: generations that this session has no more, the latest last.
        tamper: spoils the next frame that it can.
        lose_blocks: so many messages about blocks are lost next.
        heard_at: when the last load came.
        misses_blocks: the last message about blocks was lost, which only the next one tells.
    """

    def __init__(
        self,
        host: Distant,
        loop: VirtualLoop,
        hearer: Hearer,
        witness: Witness,
        judge: Judge,
    ) -> None:
        self.name = host.name
        self._loop = loop
        self._dial = host.dial
        self._hearer = hearer
        self._witness = witness
        self._judge = judge
        self._load: Load | None = None
        self._streams = OpenStreams(host.name, self._send_cancel, hearer.fault)
        self._blocks = BlockReader(host.name, hearer.blocks, self._ask_blocks)
        self._backoff_s = FIRST_BACKOFF_S
        self._closed = False
        self.connection: Connection | None = None
        self.past: deque[Past] = deque(maxlen=REMEMBERED)
        self.tamper: Callable[[Frame], Tampered | None] | None = None
        self.lose_blocks = 0
        self.misses_blocks = False
        self.heard_at = loop.time()

    @property
    def is_up(self) -> bool:
        return self._load is not None

    @property
    def is_busy(self) -> bool:
        """Whether it carries a generation."""
        return len(self._streams) > 0

    def submit(self, submission: Submission) -> Cancel:
        self._witness.submitted(submission)
        if self._load is None or self.connection is None:
            self._witness.refused(submission)
            self._loop.call_later(NEXT_TURN_S, self._witness.settled)
            raise Unavailable(f"{self.name} is not reachable")
        sink = partial(self._bring, submission)
        stream_id = self._streams.open(sink, len(submission.generation.generated_ids))
        self.connection.commands.send(network.Submit(stream_id, submission))
        return partial(self._cancel, submission, stream_id)

    def load(self) -> Load:
        return self._load or Load(state=ReplicaState.STARTING)

    def connect(self) -> None:
        """Tries until it is up."""
        if self._closed:
            return
        self.connection = self._dial(self._receive, self._down)
        if self.connection is None:
            self._again()
        else:
            self._blocks.begin()

    def hang_up(self) -> None:
        """For good; what it still has fails."""
        if self.connection is not None:
            self.connection.cut()
        self._down()
        self._closed = True

    def close(self) -> None:
        """For good, and without a word to the generations: nobody hears them any more."""
        self._closed = True
        connection, self.connection = self.connection, None
        self._load = None
        self._streams = OpenStreams(self.name, self._send_cancel, self._hearer.fault)
        if connection is not None:
            connection.cut()

    def inject(self, frame: Frame) -> None:
        """A frame of a stream that the replica was never sent; it must be named."""
        known = self._streams._told_unknown
        self._take_naming(frame, is_due=not known)

    def _cancel(self, submission: Submission, stream_id: int, reason: CancelReason) -> None:
        self._witness.cancelled(submission)
        self._judge.saw(f"cancelled: {reason.name}")
        self.past.append(Past(submission, "cancelled"))
        self._streams.cancel(stream_id, reason)

    def _again(self) -> None:
        self._loop.call_later(self._backoff_s, self.connect)
        self._backoff_s = min(2 * self._backoff_s, LAST_BACKOFF_S)

    def _receive(self, frame: Frame) -> None:
        tampered = self.tamper(frame) if self.tamper is not None else None
        if tampered is None:
            self._take(frame)
        else:
            self.tamper = None
            self._take_naming(tampered.frame, is_due=tampered.stream_id in self._streams._streams)

    def _take_naming(self, frame: Frame, *, is_due: bool) -> None:
        """Takes a frame that breaks the protocol, for which the replica must be named."""
        before = self._judge.named[self.name]
        self._take(frame)
        if is_due and self._judge.named[self.name] == before:
            self._judge.broken("the culprit is named", f"{self.name} sent {frame.events}")

    def _take(self, frame: Frame) -> None:
        if frame.load is not None:
            self.heard_at = self._loop.time()
            is_new, self._load = self._load is None, frame.load
            self._hearer.load(frame.load)
            if is_new:
                self._backoff_s = FIRST_BACKOFF_S
                self._hearer.came_up()
        if frame.blocks is not None:
            self._take_blocks(frame.blocks)
        self._streams.receive(frame.events)

    def _take_blocks(self, events: BlockEvents) -> None:
        if self.lose_blocks:
            self.lose_blocks -= 1
            self.misses_blocks = True
            self._judge.saw("lost block events")
        else:
            self.misses_blocks = False
            self._blocks.receive(events)

    def _down(self) -> None:
        if self._closed:
            return
        self.connection = None
        if self._load is not None:
            self._load = None
            self._hearer.load(None)
        self._streams.lose(LOST)
        self._again()

    def _bring(self, submission: Submission, event: Event) -> None:
        self._witness.brought(submission, event)
        if isinstance(event, (Failed, Finished)):
            self.past.append(Past(submission, "lost" if event is LOST else "ended"))
        submission.sink(event)

    def _ask_blocks(self) -> None:
        if self.connection is not None:
            self.connection.commands.send(network.WatchBlocks())

    def _send_cancel(self, stream_id: int, reason: CancelReason) -> None:
        if self.connection is not None:
            self.connection.commands.send(network.Cancel(stream_id, reason))
