"""A replica's end of one connection: commands in, frames out, as the real server session does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from services.shared.errors import ServiceError
from services.shared.stream import events
from services.shared.stream.events import Accepted, CancelReason, Event, Failed, Tokens
from services.shared.stream.load import Load
from services.shared.stream.outbox import Outbox
from services.shared.stream.source import BlockSource, Submission, TokenSource
from services.shared.stream.waiting_blocks import WaitingBlocks
from tests.simulation.network import Cancel, Command, Frame, Submit, WatchBlocks
from tests.simulation.virtual_time import VirtualLoop

LOAD_INTERVAL_S = 0.1
IDLE_INTERVAL_S = 1.0


class Door:
    """Sends what waits once per turn of the loop, or less often where the replica coalesces.

    Args:
        coalesce_s: how long events wait for others to go with them.
        report: the load to send; None sends none.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        source: TokenSource,
        blocks: BlockSource,
        coalesce_s: float,
        report: Callable[[], Load | None],
    ) -> None:
        self._loop = loop
        self._source = source
        self._blocks = blocks
        self._waiting_blocks = WaitingBlocks(lambda: None)
        self._coalesce_s = coalesce_s
        self._report = report
        self._outbox: Outbox[Event | events.Refused] = Outbox()
        self._cancels: dict[int, events.Cancel] = {}
        self._load_due = 0.0
        self._flush_is_due = False
        self._closed = False
        self.send: Callable[[Frame], None] = lambda _: None
        self.on_command: Callable[[], None] = lambda: None

    def open(self) -> None:
        """The first load goes out, and one a second at least."""
        self._beat()

    def receive(self, command: Command) -> None:
        match command:
            case Submit(stream_id, submission):
                self._submit(stream_id, submission)
            case Cancel(stream_id, reason):
                cancel = self._cancels.pop(stream_id, None)
                if cancel is not None:
                    cancel(reason)
                    self._outbox.drop(stream_id)
            case WatchBlocks():
                if self._waiting_blocks.ask():
                    self._blocks.watch(self._waiting_blocks)
        self.on_command()

    def close(self) -> None:
        """The client is gone, and so are its generations."""
        self._closed = True
        self._blocks.unwatch(self._waiting_blocks)
        cancels, self._cancels = self._cancels, {}
        for cancel in cancels.values():
            cancel(CancelReason.CLIENT_GONE)

    def abandon(self) -> None:
        """The process is dead: nothing goes out any more."""
        self._closed = True

    def wake(self) -> None:
        """Something is to be sent."""
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_later(self._coalesce_s, self._flush)

    def _submit(self, stream_id: int, submission: Submission) -> None:
        sink = partial(self._deliver, stream_id)
        try:
            told = Submission(submission.generation, submission.traceparent, sink)
            self._cancels[stream_id] = self._source.submit(told)
        except ServiceError as error:
            sink(Failed.of(error))

    def _deliver(self, stream_id: int, event: Event) -> None:
        if not isinstance(event, (Tokens, Accepted)):
            self._cancels.pop(stream_id, None)
        self._outbox.put(stream_id, event)
        self.wake()

    def _beat(self) -> None:
        if not self._closed:
            self._flush()
            self._loop.call_later(IDLE_INTERVAL_S, self._beat)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._closed:
            return
        taken = self._outbox.take()
        frame = Frame([(stream_id, event) for stream_id in taken for event in taken[stream_id]])
        if self._loop.time() >= self._load_due:
            self._load_due = self._loop.time() + LOAD_INTERVAL_S
            frame.load = self._report()
            frame.blocks = self._waiting_blocks.take()
        self.send(frame)
