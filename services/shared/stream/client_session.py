"""The client's side of a session: many generations over one stream to a token stream service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import grpc

from services.shared.errors import InvalidRequest, Unavailable
from services.shared.grpc_traffic import Traffic
from services.shared.stream.blocks import BlockEvents, BlockSink
from services.shared.stream.events import Cancel
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.session_line import Ended, SessionLine
from services.shared.stream.source import Submission
from services.shared.tls.way import Way

FIRST_BACKOFF_S = 0.05
LAST_BACKOFF_S = 2.0

LAST_CALLS_S = 30.0
"""How long calls beside the session may go on over a channel that got no new work."""

_log = logging.getLogger(__name__)


class ClientSession:
    """A token source on the other side of a connection. `run` keeps the session up.

    While it is down, `submit` raises Unavailable; generations that ran when it went down fail with
    UNAVAILABLE, retryable. `OpenStreams` tells what becomes of events that should not be.

    A connection that is worn, see `Way`, gives way to another one: what is new goes over that once
    it is up, and what runs ends where it began.

    Args:
        way: to servers of its kind.
        address: of the server, which names it in logs and errors.
        on_load: told each load that comes, and None when the session goes down.
        on_fault: told of a breach of the protocol that no generation bears.
        on_blocks: told which blocks the server can find, without gap; None asks for none.
        traffic: counts what goes over the session.
    """

    def __init__(
        self,
        way: Way,
        address: str,
        on_load: Callable[[Load | None], None] = lambda _: None,
        on_fault: Callable[[str], None] = lambda _: None,
        on_blocks: BlockSink | None = None,
        *,
        traffic: Traffic | None = None,
    ) -> None:
        self.name = address
        self._way = way
        self._on_load = on_load
        self._on_fault = on_fault
        self._on_blocks = on_blocks
        self._traffic = traffic or Traffic()
        self._told = ""
        self._leaving: set[asyncio.Task[None]] = set()
        self._version = way.version
        self._is_up = False
        self._line = self._dialled()

    @property
    def channel(self) -> grpc.aio.Channel:
        """Over which new calls beside the session go; ask for it each time."""
        return self._line.channel

    def load(self) -> Load:
        """As last told; STARTING while the session is down."""
        return self._line.load or Load(state=ReplicaState.STARTING)

    def submit(self, submission: Submission) -> Cancel:
        if self._line.load is None:
            raise Unavailable(f"{self.name} is not reachable")
        return self._line.submit(submission)

    async def run(self) -> None:
        """Connects, and connects again whenever the session ends; ends by cancellation."""
        backoff_s = FIRST_BACKOFF_S
        try:
            while True:
                began = monotonic()
                await self._kept()
                lasted = monotonic() - began > LAST_BACKOFF_S
                backoff_s = FIRST_BACKOFF_S if lasted else min(2 * backoff_s, LAST_BACKOFF_S)
                await asyncio.sleep(backoff_s)
        finally:
            await _ended(self._leaving)

    async def close(self) -> None:
        """Closes the connection, after `run` has ended."""
        await self._line.channel.close(None)

    def told_load(self, line: SessionLine, load: Load | None) -> None:
        if line is self._line:
            if not self._is_up:
                self._told = ""
            self._is_up = load is not None
            self._on_load(load)

    def told_fault(self, fault: str) -> None:
        self._on_fault(fault)

    def told_blocks(self, line: SessionLine, events: BlockEvents) -> None:
        if line is self._line and self._on_blocks is not None:
            self._on_blocks(events)

    def told_end(self, error: Ended) -> None:
        if isinstance(error, InvalidRequest):
            fault = f"{self.name} does not speak the protocol: {error.message}"
            self._tell(logging.ERROR, fault)
            self._on_fault(fault)
        else:
            self._tell(logging.INFO, f"session to {self.name} ended: {error.details()}")

    async def _kept(self) -> None:
        """The session from its beginning to its end, over one connection after the other."""
        self._line = self._again()
        running = self._begun(self._line)
        self._watch_blocks()
        try:
            while not running.done():
                await _first(running, self._way.worn(self._version))
                if not running.done():
                    running = await self._followed(running)
            running.result()
        finally:
            await _ended({running})

    async def _followed(self, running: asyncio.Task[None]) -> asyncio.Task[None]:
        """The run of a line over a new connection, or `running` if that ends before there is one.

        What cannot be reached over a new connection is served over the old one.
        """
        while not running.done():
            version, line = self._way.version, self._dialled()
            coming, taken = self._begun(line), False
            try:
                await _first(running, coming, line.is_up.wait())
                taken = line.is_up.is_set() and not coming.done()
            finally:
                if not taken:
                    await _ended({coming})
                    await line.channel.close(None)
            if taken:
                self._version = version
                self._take_over(line, running)
                return coming
            await _first(running, asyncio.sleep(LAST_BACKOFF_S))
        return running

    def _take_over(self, line: SessionLine, running: asyncio.Task[None]) -> None:
        self._leave(_left(self._line, running))
        self._line = line
        _log.info("new connection to %s", self.name)
        self.told_load(line, line.load)
        self._watch_blocks()

    def _dialled(self) -> SessionLine:
        return SessionLine(self._way.dial(self.name), self.name, self, self._traffic)

    def _again(self) -> SessionLine:
        """A line for the next session, over the same channel while that may be used."""
        ended = self._line
        if self._version == self._way.version:
            return SessionLine(ended.channel, self.name, self, self._traffic)
        self._leave(_closed(ended.channel))
        self._version = self._way.version
        return self._dialled()

    def _leave(self, work: Coroutine[Any, Any, None]) -> None:
        leaving = asyncio.create_task(work, name=f"leave {self.name}")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def _begun(self, line: SessionLine) -> asyncio.Task[None]:
        return asyncio.create_task(line.run(), name=f"session to {self.name}")

    def _watch_blocks(self) -> None:
        if self._on_blocks is not None:
            self._line.watch_blocks()

    def _tell(self, level: int, message: str) -> None:
        """Logs why there is no session, once while it stays the same."""
        if message != self._told:
            self._told = message
            _log.log(level, "%s", message)


async def _left(line: SessionLine, running: asyncio.Task[None]) -> None:
    """Has what runs on a line end, then the line."""
    try:
        await _first(running, line.is_quiet.wait())
        bug = running.exception() if running.done() and not running.cancelled() else None
        if bug is not None:
            _log.error("the end of a session", exc_info=bug)
    finally:
        await _ended({running})
        await _closed(line.channel)


async def _closed(channel: grpc.aio.Channel) -> None:
    """Has calls beside the session end, then the channel; at once when cancelled."""
    try:
        await channel.close(LAST_CALLS_S)
    finally:
        await channel.close(None)


async def _first(running: asyncio.Task[None], *others: Any) -> None:
    """Returns when one has ended; of the others, coroutines are ended and tasks go on."""
    tasks = [asyncio.ensure_future(other) for other in others]
    begun = {
        task for task, other in zip(tasks, others, strict=True) if isinstance(other, Coroutine)
    }
    try:
        await asyncio.wait({running, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _ended(begun)


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancels tasks and returns when they have ended; what they failed of, others have told."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
