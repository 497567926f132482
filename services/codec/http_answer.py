"""A chat endpoint over ASGI: whole answers, or server-sent events."""

from __future__ import annotations

import logging
import re
from contextlib import aclosing
from dataclasses import replace

from starlette.types import Receive, Scope, Send

from services.codec.codec import Codec
from services.codec.connection import while_connected
from services.codec.events import Error, OutputEvent
from services.codec.exchange import Exchange, note_error
from services.codec.frames import framed
from services.codec.http_body import BodyLimits, body_of
from services.codec.http_boundary import exchange_of, headers_of
from services.codec.http_reply import send_json
from services.codec.protocols.reply import Reply
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.request import Request
from services.codec.session_hint import session_of
from services.codec.telling import wanting
from services.codec.told_timeline import HEADER
from services.shared.errors import Internal

SSE_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]

_KIND = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_log = logging.getLogger(__name__)


class ChatEndpoint:
    """Answers one protocol. Nothing is sent before the generation was accepted."""

    def __init__(self, codec: Codec, protocol: WireProtocol, body: BodyLimits) -> None:
        self._codec = codec
        self._protocol = protocol
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_of(scope, receive, self._body)
        exchange = exchange_of(scope)
        request = await self._codec.parse(self._protocol.parse, body, exchange)
        # A session is nearer than what a body says, which may be of all that a user does.
        headers = headers_of(scope)
        affinity = session_of(headers) or request.affinity
        request = wanting(replace(request, affinity=affinity), headers.get(HEADER))
        exchange.account.operation = self._protocol.name
        exchange.figures["stream"] = request.delivery.stream
        reply = self._codec.reply(request, exchange)
        if request.delivery.stream:
            await self._stream(request, reply, exchange, (receive, send))
            return
        events: list[OutputEvent] = []
        async with (
            while_connected(receive),
            aclosing(self._codec.answer(request, exchange)) as batches,
        ):
            async for batch in batches:
                events += batch
        await send_json(send, 200, self._protocol.whole(reply, events), _ignored(request))

    async def _stream(
        self, request: Request, reply: Reply, exchange: Exchange, wire: tuple[Receive, Send]
    ) -> None:
        receive, send = wire
        stream = self._protocol.stream(reply)
        started = False
        async with (
            while_connected(receive),
            aclosing(self._codec.answer(request, exchange)) as batches,
            aclosing(framed(stream, batches, exchange)) as written,
        ):
            try:
                async for frames in written:
                    if not started:
                        started = True
                        headers = [*SSE_HEADERS, *_ignored(request)]
                        await send(
                            {"type": "http.response.start", "status": 200, "headers": headers}
                        )
                    await _write(send, b"".join(frames))
            except Exception:  # the bug boundary of a stream that has begun
                if not started:
                    raise
                _log.exception("bug in a stream")
                error = Internal("internal error")
                note_error(exchange, error)
                await _write(send, b"".join(stream.frames(Error(error))))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _ignored(request: Request) -> list[tuple[bytes, bytes]]:
    """Tells callers which tools were left out of their request."""
    kinds = ", ".join(sorted({kind for kind in request.ignored_tools if _KIND.fullmatch(kind)}))
    return [(b"x-tokenway-ignored-tools", kinds.encode())] if kinds else []


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
