"""One session over one channel, from its first message to its last."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

import grpc
from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.errors import Code, InvalidRequest
from services.shared.grpc_traffic import Traffic
from services.shared.stream.block_reader import BlockReader
from services.shared.stream.block_wire import blocks_from
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.commands import Commands
from services.shared.stream.event_wire import events_of
from services.shared.stream.events import Cancel, CancelReason, Failed
from services.shared.stream.generation_wire import request_of
from services.shared.stream.load import Load
from services.shared.stream.load_wire import load_from
from services.shared.stream.open_streams import OpenStreams
from services.shared.stream.source import Submission

LOST = Failed(code=Code.UNAVAILABLE, message="the session to the replica ended", retryable=True)

_SESSION = "/tokenway.stream.v1.TokenStreamService/Session"
_WATCH_BLOCKS = pb.SessionRequest(watch_blocks=pb.WatchBlocks())

Ended = grpc.aio.AioRpcError | InvalidRequest


class Listener(Protocol):
    """Hears what is said on a line that no generation's sink is told."""

    def told_load(self, line: SessionLine, load: Load | None) -> None:
        """The load as it is now; None when the line has ended, before its streams hear of it."""

    def told_fault(self, fault: str) -> None:
        """A breach of the protocol that no generation bears."""

    def told_blocks(self, line: SessionLine, events: BlockEvents) -> None:
        """What became of the blocks, without gap, of a line that was asked to watch them."""

    def told_end(self, error: Ended) -> None:
        """The line broke off, or what came over it was no message of ours."""


class SessionLine:
    """Runs once.

    Args:
        channel: stays open while the line runs.
        name: names the server.
        listener: hears of what is common to all generations.
        traffic: counts what goes over it.

    Attributes:
        load: as last told; None before the first and after the end.
        is_up: once a load has come.
        is_quiet: while it carries no generation.
    """

    def __init__(
        self, channel: grpc.aio.Channel, name: str, listener: Listener, traffic: Traffic
    ) -> None:
        self.channel = channel
        self._traffic = traffic
        self.load: Load | None = None
        self.is_up = asyncio.Event()
        self.is_quiet = asyncio.Event()
        self.is_quiet.set()
        self._listener = listener
        self._commands = Commands()
        self._streams = OpenStreams(name, self._send_cancel, listener.told_fault)
        self._blocks = BlockReader(name, partial(listener.told_blocks, self), self._ask_blocks)
        self._watches = False

    def submit(self, submission: Submission) -> Cancel:
        generation = submission.generation
        known, limit = len(generation.generated_ids), generation.stopping.max_tokens
        stream_id = self._streams.open(submission.sink, known, limit)
        self.is_quiet.clear()
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

    def watch_blocks(self) -> None:
        """Asks which blocks the server can find."""
        self._watches = True
        self._blocks.begin()

    async def run(self) -> None:
        """Returns when the line has ended; what ran on it then has failed."""
        session = self.channel.stream_stream(
            _SESSION,
            request_serializer=self._traffic.packing(pb.SessionRequest.SerializeToString),
            response_deserializer=self._traffic.unpacking(pb.SessionResponse.FromString),
        )
        call = session(aiter(self._commands))
        try:
            async for response in call:
                self._receive(response)
        except (grpc.aio.AioRpcError, InvalidRequest) as error:
            self._listener.told_end(error)
        finally:
            self._commands.close()
            call.cancel()
            self._down()

    def _receive(self, response: pb.SessionResponse | None) -> None:
        if response is None:  # what grpc makes of bytes that are no message
            raise InvalidRequest("a response could not be read")
        if response.HasField("load"):
            self.load = load_from(response.load)
            self.is_up.set()
            self._listener.told_load(self, self.load)
        if self._watches and response.HasField("blocks"):
            self._blocks.receive(blocks_from(response.blocks))
        self._streams.receive(events_of(response.frame))
        self._note_quiet()

    def _ask_blocks(self) -> None:
        self._commands.put(_WATCH_BLOCKS)

    def _send_cancel(self, stream_id: int, reason: CancelReason) -> None:
        cancel = pb.Cancel(stream_id=stream_id, reason=pb.CancelReason.ValueType(reason.value))
        self._commands.put(pb.SessionRequest(cancel=cancel))
        self._note_quiet()

    def _note_quiet(self) -> None:
        if not self._streams:
            self.is_quiet.set()

    def _down(self) -> None:
        if self.load is not None:
            self.load = None
            self._listener.told_load(self, None)
        self._streams.lose(LOST)
        self.is_quiet.set()
