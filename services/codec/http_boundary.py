"""Around every HTTP request: its names, its log line, and errors in its protocol's words."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.codec.exchange import Exchange, exchanging, note_error, request_id_from
from services.codec.http_reply import send_refusal
from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.completions.protocol import COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.responses.protocol import RESPONSES
from services.codec.protocols.wire_protocol import WireProtocol
from services.shared.errors import Cancelled, Internal, ServiceError
from services.shared.trace_context import HEADER, TraceContext

_EXCHANGE = "tokenway.exchange"
_BY_PATH = {
    "/v1/messages": MESSAGES,
    "/v1/responses": RESPONSES,
    "/v1/completions": COMPLETIONS,
    "/v1/chat": CHAT_COMPLETIONS,
}

_log = logging.getLogger(__name__)


def exchange_of(scope: Scope) -> Exchange:
    exchange: Exchange = scope[_EXCHANGE]
    return exchange


def protocol_of(scope: Scope) -> WireProtocol:
    """Whose words an error is told in."""
    for path, protocol in _BY_PATH.items():
        if scope["path"].startswith(path):
            return protocol
    return MESSAGES if "anthropic-version" in headers_of(scope) else CHAT_COMPLETIONS


def headers_of(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


class HttpBoundary:
    """Middleware. Paths in `quiet` pass it by.

    Args:
        app: what it surrounds.
        quiet: paths that are asked all the time and whose answers need no names.
        unread_limit: bytes of a refused body that are read and forgotten.
    """

    def __init__(self, app: ASGIApp, quiet: frozenset[str], unread_limit: int) -> None:
        self._app = app
        self._quiet = quiet
        self._unread_limit = unread_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._quiet:
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        request_id = request_id_from(headers.get("x-request-id"))
        parent = TraceContext.parse(headers.get(HEADER))
        try:
            with exchanging("http", request_id, parent) as exchange:
                await self._named(exchange, scope, receive, send)
        except Cancelled:
            return

    async def _named(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_EXCHANGE] = exchange
        exchange.figures["path"] = scope["path"][:100]
        has_started = False

        async def send_named(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                exchange.figures["status"] = message["status"]
                headers = MutableHeaders(raw=list(message["headers"]))
                headers["x-request-id"] = headers["request-id"] = exchange.request_id
                headers["x-trace-id"] = exchange.trace.trace_id
                message = {**message, "headers": headers.raw}
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except Exception as error:  # the one boundary of HTTP
            known = _known(error)
            if isinstance(known, Cancelled) or has_started:
                raise known from error
            note_error(exchange, known)
            refusal = protocol_of(scope).refusal(known, exchange.request_id)
            await send_refusal(refusal, receive, send_named, unread_limit=self._unread_limit)


def _known(error: Exception) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    _log.error("bug in a request", exc_info=error)
    return Internal("internal error")
