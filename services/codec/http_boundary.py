"""Around every HTTP request: its names, its log line, and errors in its protocol's words."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.codec.exchange import Exchange, exchanging, note_error
from services.codec.http_reply import send_refusal
from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.completions.protocol import COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.reply import Refusal
from services.codec.protocols.responses.protocol import RESPONSES
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.rate_headers import rate_headers
from services.codec.reception import Reception, SentAway
from services.codec.repeats import caller_of
from services.codec.request_figures import Door
from services.codec.retry import Header, retry_headers
from services.shared.access.caller import ANYBODY, Caller
from services.shared.access.shown import Shown
from services.shared.errors import (
    Cancelled,
    Internal,
    RequestTooLarge,
    SentTooSlowly,
    ServiceError,
    Unauthenticated,
)
from services.shared.request_id import request_id_from
from services.shared.trace_context import HEADER, TraceContext

_EXCHANGE = "tokenway.exchange"
_CALLER = "tokenway.caller"
_NAME = "tokenway.caller-name"
CHALLENGE: tuple[Header, ...] = ((b"www-authenticate", b"Bearer"),)
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


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundaryTerms:
    """What the boundary is told of the door.

    Args:
        reception: lets requests in.
        answers: paths that the model answers, which are refused when there is no room.
        quiet: paths that are asked all the time, and whose answers need no names.
        open: paths, beside the quiet ones, that are answered without a key.
        unread_limit: bytes of a refused body that are read and forgotten.
    """

    reception: Reception
    answers: frozenset[str]
    quiet: frozenset[str]
    open: frozenset[str]
    unread_limit: int


class HttpBoundary:
    """Middleware around `app`."""

    def __init__(self, app: ASGIApp, terms: BoundaryTerms) -> None:
        self._app = app
        self._terms = terms
        self._reception = terms.reception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._terms.quiet:
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        admitted = self._admitted(scope)
        if isinstance(admitted, SentAway):
            await self._send_away(admitted, scope, receive, send)
            return
        request_id = request_id_from(headers.get("x-request-id"))
        parent = TraceContext.given(headers.get(HEADER))
        try:
            listeners = self._reception.listeners
            with exchanging(Door.HTTP, request_id, parent, admitted, listeners) as exchange:
                await self._named(exchange, scope, receive, send)
        except Cancelled:
            return

    def _admitted(self, scope: Scope) -> Caller | SentAway:
        """Decided before anything of the body is read."""
        if scope["path"] in self._terms.open:
            return ANYBODY
        shown, peer = Shown.of(scope["headers"]), (scope["client"] or ("",))[0]
        protocol = protocol_of(scope)
        caller = self._reception.admit(shown, peer, protocol)
        if isinstance(caller, SentAway):
            return caller
        name = caller_of(caller, shown, peer)
        scope[_CALLER], scope[_NAME] = caller, name
        is_answered = scope["path"] in self._terms.answers
        away = self._reception.sent_away(name, caller, protocol) if is_answered else None
        return away or caller

    async def _send_away(self, away: SentAway, scope: Scope, receive: Receive, send: Send) -> None:
        name = away.request_id.encode()
        headers = [
            *retry_headers(away.refusal.status, away.retry_after_s),
            *((b"x-request-id", name), (b"request-id", name)),
            *(CHALLENGE if isinstance(away.error, Unauthenticated) else ()),
            *self._limits(scope),
            *self._leaving(),
        ]
        limit = self._terms.unread_limit
        await send_refusal(away.refusal, receive, send, headers=headers, unread_limit=limit)

    async def _named(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_EXCHANGE] = exchange
        exchange.figures["path"] = scope["path"][:100]
        has_started = is_read = False

        async def send_named(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message = self._with_names(message, exchange, scope)
            await send(message)

        async def receive_noted() -> Message:
            nonlocal is_read
            is_read = True
            return await receive()

        try:
            await self._taken(scope, receive_noted, send_named)
        except Exception as error:  # the one boundary of HTTP
            known = _known(error)
            if isinstance(known, Cancelled) or has_started:
                raise known from error
            note_error(exchange, known)
            refusal = self._refusal(known, exchange, scope)
            sends_on = isinstance(known, (RequestTooLarge, SentTooSlowly))
            limit = 0 if is_read and not sends_on else self._terms.unread_limit
            headers = retry_headers(refusal.status, known.retry_after_s)
            if isinstance(known, SentTooSlowly):
                headers.append((b"connection", b"close"))
            await send_refusal(refusal, receive, send_named, headers=headers, unread_limit=limit)

    async def _taken(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._reception.open_requests.one():
            if scope["method"] == "POST":
                for_answer = scope["path"] in self._terms.answers
                await self._reception.enter(exchange_of(scope).caller, for_answer=for_answer)
            await self._app(scope, receive, send)

    def _refusal(self, error: ServiceError, exchange: Exchange, scope: Scope) -> Refusal:
        if scope["path"] in self._terms.answers:
            self._reception.note(scope[_NAME], error, exchange.request_id)
        return protocol_of(scope).refusal(error, exchange.request_id)

    def _with_names(self, message: Message, exchange: Exchange, scope: Scope) -> Message:
        exchange.figures["status"] = message["status"]
        raw = [*message["headers"], *self._limits(scope), *self._leaving()]
        headers = MutableHeaders(raw=raw)
        headers["x-request-id"] = headers["request-id"] = exchange.request_id
        headers["x-trace-id"] = exchange.trace.trace_id
        if routed := exchange.figures.get("routed"):
            headers["x-tokenway-route"] = str(routed)
        return {**message, "headers": headers.raw}

    def _limits(self, scope: Scope) -> list[Header]:
        """What the caller's tenant may use and what is left of it."""
        caller: Caller = scope.get(_CALLER, ANYBODY)
        if caller.tenant is None:
            return []
        return rate_headers(self._reception.quotas.of(caller.tenant), protocol_of(scope))

    def _leaving(self) -> list[tuple[bytes, bytes]]:
        """Who keeps a connection goes elsewhere with the next request."""
        return [(b"connection", b"close")] if self._reception.open_requests.are_leaving else []


def _known(error: Exception) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    _log.error("bug in a request", exc_info=error)
    return Internal("internal error")
