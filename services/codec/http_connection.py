"""A connection of the HTTP door: uvicorn's, within bounds of number, size and time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from services.codec.connection_settings import ConnectionSettings
from services.codec.http_head import HeadReader, bare_refusal
from services.codec.open_connections import OpenConnections
from services.shared.errors import SentTooSlowly, ServiceError, Unavailable

LINGER_S = 2.0
"""Whose connection is closed while it still sends never hears what it was told."""

SOME_BYTES = 16 * 2**10
"""What a client must take in time of what is sent, or all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionTerms:
    """What all connections of a door share."""

    settings: ConnectionSettings
    connections: OpenConnections


class HttpConnection(H11Protocol):
    """Hangs up on peers that take too much: of connections, of headers, of time."""

    def __init__(
        self,
        terms: ConnectionTerms,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._terms = terms
        settings = terms.settings
        self.conn: HeadReader = HeadReader(settings.max_header_bytes, settings.max_headers)
        self._address: str | None = None
        self._is_leaving = False
        self._watched: object = None
        self._due: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._send_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # What the kernel does not take is noticed at once, and one write waits here at most.
        transport.set_write_buffer_limits(high=1)
        address = self.client[0] if self.client else ""
        reason = self._terms.connections.enter(address)
        if reason is not None:
            self._leave(Unavailable(reason))
            return
        self._address = address
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._due, self._send_due):
            if timer is not None:
                timer.cancel()
        if self._address is not None:
            self._terms.connections.leave(self._address)
            self._address = None

    def send_400_response(self, msg: str) -> None:
        """Called for what is no HTTP, or too much of it."""
        del msg
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._leave(self.conn.fault)
        else:
            self.transport.abort()

    def shutdown(self) -> None:
        """Called when the server stops."""
        if self._is_leaving:
            self.transport.abort()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._send_due = self._after(self._terms.settings.send_timeout_s, self._send_is_late)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._send_due is not None:
            self._send_due.cancel()
            self._send_due = None

    def _watch(self) -> None:
        """One limit at a time: of the head, or of the body."""
        state = self.conn.their_state
        if self._is_leaving or self._watched == (state, self.cycle):
            return
        self._watched = (state, self.cycle)
        if self._due is not None:
            self._due.cancel()
            self._due = None
        settings = self._terms.settings
        if state is h11.IDLE:
            self._due = self._after(settings.header_timeout_s, self._head_is_late)
        elif state is h11.SEND_BODY:
            # Who waits for the body is the first to say so.
            due_s = settings.body_timeout_s + LINGER_S
            self._due = self._after(due_s, self.transport.abort)

    def _head_is_late(self) -> None:
        has_begun = bool(self.conn.trailing_data[0])
        if not has_begun:
            self.transport.close()
            return
        limit_s = self._terms.settings.header_timeout_s
        self._leave(SentTooSlowly(f"headers must be sent within {limit_s:g} seconds"))

    def _send_is_late(self) -> None:
        """Ends the connection, and with it the generation, of a client that does not read."""
        unsent = self.transport.get_write_buffer_size()
        if unsent > self._unsent - SOME_BYTES:
            self.transport.abort()
            return
        self._unsent = unsent
        self._send_due = self._after(self._terms.settings.send_timeout_s, self._send_is_late)

    def _leave(self, error: ServiceError) -> None:
        """Tells an error; what still comes is forgotten."""
        self._is_leaving = True
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self._due is not None:
            self._due.cancel()
        self.transport.write(bare_refusal(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._due = self._after(LINGER_S, self.transport.abort)

    def _after(self, seconds: float, call: Any) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, call)
