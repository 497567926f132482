"""The server's side of a session: commands in, step frames out."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from functools import partial
from time import monotonic

from google.protobuf.message import DecodeError
from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.errors import Internal, InvalidRequest, ServiceError
from services.shared.stream.block_wire import blocks_of
from services.shared.stream.event_wire import frame_of
from services.shared.stream.events import (
    Accepted,
    Cancel,
    CancelReason,
    Event,
    Failed,
    Refused,
    Tokens,
)
from services.shared.stream.generation_wire import generation_from, owned
from services.shared.stream.load_wire import load_of
from services.shared.stream.outbox import Outbox
from services.shared.stream.source import BlockSource, Submission, TokenSource
from services.shared.stream.waiting_blocks import WaitingBlocks

LOAD_INTERVAL_S = 0.1
IDLE_INTERVAL_S = 1.0

_REASONS: dict[int, CancelReason] = {reason.value: reason for reason in CancelReason}

_log = logging.getLogger(__name__)


class ServerSession:
    """The generations of one client; they end with it.

    Args:
        blocks: None where the source has no blocks of its own.
        tenant: whose generations they are, whatever they say; None where they say it.
    """

    def __init__(
        self, source: TokenSource, blocks: BlockSource | None = None, tenant: str | None = None
    ) -> None:
        self._source = source
        self._tenant = tenant
        self._blocks = blocks
        self._outbox: Outbox[Event | Refused] = Outbox()
        self._cancels: dict[int, Cancel] = {}
        self._waiting_blocks = WaitingBlocks(self._outbox.wake)
        self._last_id = -1
        self._load_due = 0.0

    async def read(self, requests: AsyncIterator[pb.SessionRequest]) -> None:
        """Carries out commands until the client has no more.

        Raises:
            InvalidRequest: bytes that are no command.
        """
        try:
            async for request in requests:
                match request.WhichOneof("command"):
                    case "submit":
                        self._submit(request.submit)
                    case "cancel":
                        self._cancel(request.cancel)
                    case "watch_blocks":
                        self._watch_blocks()
                await self._outbox.room()
        except DecodeError as error:
            raise InvalidRequest("a command could not be read") from error
        finally:
            self._outbox.close()

    async def responses(self) -> AsyncIterator[pb.SessionResponse]:
        """Frames as events come, at least one a second, until the client is done."""
        while not self._outbox.closed:
            events = self._outbox.take()
            due = monotonic() >= self._load_due
            if events or due:
                response = pb.SessionResponse(frame=frame_of(events))
                if due:
                    self._report(response)
                yield response
            await self._outbox.filled(self._patience_s())

    def close(self) -> None:
        """Cancels what still runs, and watches no more."""
        if self._blocks is not None:
            self._blocks.unwatch(self._waiting_blocks)
        cancels, self._cancels = self._cancels, {}
        for cancel in cancels.values():
            cancel(CancelReason.CLIENT_GONE)

    def _submit(self, submit: pb.Submit) -> None:
        stream_id = submit.stream_id
        if stream_id <= self._last_id:
            message = f"stream_id must be above all that were used before, got {stream_id}"
            self._outbox.put(stream_id, Refused(message))
            return
        self._last_id = stream_id
        sink = partial(self._deliver, stream_id)
        try:
            generation = owned(generation_from(submit.request), self._tenant)
            submission = Submission(generation, submit.traceparent, sink)
            self._cancels[stream_id] = self._source.submit(submission)
        except ServiceError as error:
            sink(Failed.of(error))
        except Exception:  # noqa: BLE001  # a bug in one submission must not end its neighbours
            _log.exception("submit failed", extra={"fields": {"traceparent": submit.traceparent}})
            sink(Failed.of(Internal("internal error")))

    def _report(self, response: pb.SessionResponse) -> None:
        """Adds the load and what waits of blocks."""
        self._load_due = monotonic() + LOAD_INTERVAL_S
        response.load.CopyFrom(load_of(self._source.load()))
        blocks = self._waiting_blocks.take()
        if blocks is not None:
            response.blocks.CopyFrom(blocks_of(blocks))

    def _patience_s(self) -> float:
        """Until the next response if no event comes."""
        if self._waiting_blocks:
            return max(0.0, self._load_due - monotonic())
        return IDLE_INTERVAL_S

    def _watch_blocks(self) -> None:
        if self._blocks is not None and self._waiting_blocks.ask():
            self._blocks.watch(self._waiting_blocks)

    def _cancel(self, cancel: pb.Cancel) -> None:
        cancel_stream = self._cancels.pop(cancel.stream_id, None)
        if cancel_stream is not None:
            cancel_stream(_REASONS.get(cancel.reason, CancelReason.UNSPECIFIED))
            self._outbox.drop(cancel.stream_id)

    def _deliver(self, stream_id: int, event: Event) -> None:
        if not isinstance(event, (Tokens, Accepted)):
            self._cancels.pop(stream_id, None)
        self._outbox.put(stream_id, event)
