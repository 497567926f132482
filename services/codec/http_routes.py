"""The HTTP door's routes."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from services.codec.codec import Codec
from services.codec.http_answer import ChatEndpoint
from services.codec.http_body import body_of
from services.codec.http_boundary import HttpBoundary, exchange_of, protocol_of
from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.messages.reply import token_count
from services.codec.protocols.messages.request import parse_count
from services.codec.protocols.models import model_entry, model_list
from services.codec.readiness import Ready
from services.shared.errors import NotFound
from services.shared.settings import HealthSettings


class _Pages:
    """Everything that is not an answer of the model."""

    def __init__(self, codec: Codec, ready: Ready, max_body_bytes: int) -> None:
        self._codec = codec
        self._ready = ready
        self._max_body_bytes = max_body_bytes

    async def root(self, _: HttpRequest) -> Response:
        """Agents ask for its head to see whether anybody is there."""
        return Response()

    async def models(self, _: HttpRequest) -> Response:
        return _json(model_list(self._codec.model))

    async def model(self, request: HttpRequest) -> Response:
        return _json(model_entry(self._codec.model, request.path_params["name"]))

    async def count_tokens(self, request: HttpRequest) -> Response:
        body = await body_of(request.scope, request.receive, self._max_body_bytes)
        parsed = await self._codec.parse(parse_count, body)
        ids = await self._codec.prompt_ids(parsed, exchange_of(request.scope))
        return _json(token_count(len(ids)))

    async def liveness(self, _: HttpRequest) -> Response:
        return JSONResponse({"status": "alive"})

    async def readiness(self, _: HttpRequest) -> Response:
        fault = self._ready.fault
        if fault is not None:
            return JSONResponse({"status": "not ready", "reason": fault}, 503)
        return JSONResponse({"status": "ready"})


def app(codec: Codec, ready: Ready, health: HealthSettings, max_body_bytes: int) -> Starlette:
    pages = _Pages(codec, ready, max_body_bytes)
    chat = ChatEndpoint(codec, CHAT_COMPLETIONS, max_body_bytes)
    messages = ChatEndpoint(codec, MESSAGES, max_body_bytes)
    starlette = Starlette(
        routes=[
            Route("/", pages.root),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", pages.count_tokens, methods=["POST"]),
            Route("/v1/models", pages.models),
            Route("/v1/models/{name:path}", pages.model),
            Route(health.liveness_path, pages.liveness),
            Route(health.readiness_path, pages.readiness),
        ],
        middleware=[
            Middleware(
                HttpBoundary,
                quiet=frozenset({health.liveness_path, health.readiness_path}),
                unread_limit=2 * max_body_bytes,
            )
        ],
        exception_handlers={HTTPException: _no_route},
    )
    starlette.router.redirect_slashes = False
    return starlette


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


async def _no_route(request: HttpRequest, error: Exception) -> Response:
    """404 and 405 in the protocol's envelope."""
    assert isinstance(error, HTTPException)  # noqa: S101 it is registered for nothing else
    known = error.status_code == 405
    text = f"the method {request.method} is not allowed here" if known else "no such path"
    refusal = protocol_of(request.scope).refusal(
        NotFound(text), exchange_of(request.scope).request_id
    )
    return Response(
        refusal.body,
        error.status_code,
        headers=dict(error.headers or {}),
        media_type="application/json",
    )
