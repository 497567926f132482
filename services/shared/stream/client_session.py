"""The client's side of a session: many generations over one stream to a token stream service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import monotonic

import grpc
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.errors import Code, InvalidRequest, Unavailable
from services.shared.stream.block_reader import BlockReader
from services.shared.stream.block_wire import blocks_from
from services.shared.stream.blocks import BlockSink
from services.shared.stream.commands import Commands
from services.shared.stream.event_wire import events_of
from services.shared.stream.events import Cancel, CancelReason, Failed
from services.shared.stream.generation_wire import request_of
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.load_wire import load_from
from services.shared.stream.open_streams import OpenStreams
from services.shared.stream.source import Submission

FIRST_BACKOFF_S = 0.05
LAST_BACKOFF_S = 2.0

LOST = Failed(code=Code.UNAVAILABLE, message="the session to the replica ended", retryable=True)

_WATCH_BLOCKS = pb.SessionRequest(watch_blocks=pb.WatchBlocks())

_log = logging.getLogger(__name__)


class ClientSession:
    """A token source on the other side of a channel. `run` keeps the session up.

    While it is down, `submit` raises Unavailable; generations that ran when it went down fail with
    UNAVAILABLE, retryable. `OpenStreams` tells what becomes of events that should not be.

    Args:
        channel: the caller closes it after `run` has ended.
        name: names the server in logs and errors.
        on_load: told each load that comes, and None when the session goes down.
        on_fault: told of a breach of the protocol that no generation bears.
        on_blocks: told which blocks the server can find, without gap; None asks for none.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        name: str,
        on_load: Callable[[Load | None], None] = lambda _: None,
        on_fault: Callable[[str], None] = lambda _: None,
        on_blocks: BlockSink | None = None,
    ) -> None:
        self.name = name
        self._stub = rpc.TokenStreamServiceStub(channel)
        self._on_load = on_load
        self._on_fault = on_fault
        self._streams = OpenStreams(name, self._send_cancel, on_fault)
        self._blocks = None if on_blocks is None else BlockReader(name, on_blocks, self._ask_blocks)
        self._commands = Commands()
        self._load: Load | None = None
        self._told = ""

    def load(self) -> Load:
        """As last told; STARTING while the session is down."""
        return self._load or Load(state=ReplicaState.STARTING)

    def submit(self, submission: Submission) -> Cancel:
        if self._load is None:
            raise Unavailable(f"{self.name} is not reachable")
        generation = submission.generation
        known, limit = len(generation.generated_ids), generation.stopping.max_tokens
        stream_id = self._streams.open(submission.sink, known, limit)
        self._commands.put(
            pb.SessionRequest(
                submit=pb.Submit(
                    stream_id=stream_id,
                    request=request_of(generation),
                    traceparent=submission.traceparent,
                )
            )
        )
        return partial(self._streams.cancel, stream_id)

    async def run(self) -> None:
        """Connects, and connects again whenever the session ends; ends by cancellation."""
        backoff_s = FIRST_BACKOFF_S
        while True:
            began = monotonic()
            try:
                await self._connected()
            except grpc.aio.AioRpcError as error:
                self._tell(logging.INFO, f"session to {self.name} ended: {error.details()}")
            except InvalidRequest as error:
                fault = f"{self.name} does not speak the protocol: {error.message}"
                self._tell(logging.ERROR, fault)
                self._on_fault(fault)
            finally:
                self._down()
            lasted = monotonic() - began > LAST_BACKOFF_S
            backoff_s = FIRST_BACKOFF_S if lasted else min(2 * backoff_s, LAST_BACKOFF_S)
            await asyncio.sleep(backoff_s)

    async def _connected(self) -> None:
        commands = self._commands = Commands()
        if self._blocks is not None:
            self._blocks.begin()
        call = self._stub.Session(aiter(commands))
        try:
            async for response in call:
                self._receive(response)
        finally:
            commands.close()
            call.cancel()

    def _receive(self, response: pb.SessionResponse | None) -> None:
        if response is None:  # what grpc makes of bytes that are no message
            raise InvalidRequest("a response could not be read")
        if response.HasField("load"):
            if self._load is None:
                self._told = ""
            self._load = load_from(response.load)
            self._on_load(self._load)
        if self._blocks is not None and response.HasField("blocks"):
            self._blocks.receive(blocks_from(response.blocks))
        self._streams.receive(events_of(response.frame))

    def _ask_blocks(self) -> None:
        self._commands.put(_WATCH_BLOCKS)

    def _send_cancel(self, stream_id: int, reason: CancelReason) -> None:
        cancel = pb.Cancel(stream_id=stream_id, reason=pb.CancelReason.ValueType(reason.value))
        self._commands.put(pb.SessionRequest(cancel=cancel))

    def _tell(self, level: int, message: str) -> None:
        """Logs why there is no session, once while it stays the same."""
        if message != self._told:
            self._told = message
            _log.log(level, "%s", message)

    def _down(self) -> None:
        if self._load is not None:
            self._load = None
            self._on_load(None)
        self._streams.lose(LOST)
