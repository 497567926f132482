"""The HTTP door's routes."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from services.codec.codec import Codec
from services.codec.http_answer import ChatEndpoint
from services.codec.http_body import BodyLimits
from services.codec.http_boundary import (
    BoundaryTerms,
    HttpBoundary,
    exchange_of,
    protocol_of,
)
from services.codec.http_counts import CountPages
from services.codec.http_reply import json_response
from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.completions.protocol import COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.models import model_entry, model_list
from services.codec.protocols.responses.protocol import RESPONSES
from services.codec.rate_headers import NAMES as RATE_HEADERS
from services.codec.readiness import Ready
from services.codec.reception import Reception
from services.shared.errors import NotFound
from services.shared.settings import HealthSettings

ANSWERS = {
    "/v1/chat/completions": CHAT_COMPLETIONS,
    "/v1/completions": COMPLETIONS,
    "/v1/messages": MESSAGES,
    "/v1/responses": RESPONSES,
}

OPEN = frozenset({"/"})
"""Beside the health paths all that is told without a key: that somebody is there."""


class _Pages:
    """Everything that is not an answer of the model."""

    def __init__(self, codec: Codec, ready: Ready) -> None:
        self._codec = codec
        self._ready = ready

    async def root(self, _: HttpRequest) -> Response:
        """Agents ask for its head to see whether anybody is there."""
        return Response()

    async def models(self, request: HttpRequest) -> Response:
        return json_response(model_list(self._codec.model_of(exchange_of(request.scope).caller)))

    async def model(self, request: HttpRequest) -> Response:
        model = self._codec.model_of(exchange_of(request.scope).caller)
        return json_response(model_entry(model, request.path_params["name"]))

    async def liveness(self, _: HttpRequest) -> Response:
        return JSONResponse({"status": "alive"})

    async def readiness(self, _: HttpRequest) -> Response:
        fault = self._ready.fault
        if fault is not None:
            return JSONResponse({"status": "not ready", "reason": fault}, 503)
        return JSONResponse({"status": "ready"})


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpTerms:
    """What the HTTP door is told of its settings."""

    health: HealthSettings
    body: BodyLimits
    allowed_origins: tuple[str, ...] = ()


def app(codec: Codec, ready: Ready, reception: Reception, terms: HttpTerms) -> Starlette:
    health = terms.health
    boundary = BoundaryTerms(
        reception=reception,
        answers=frozenset(ANSWERS),
        quiet=frozenset({health.liveness_path, health.readiness_path}),
        open=OPEN,
        unread_limit=2 * terms.body.max_bytes,
    )
    starlette = Starlette(
        routes=[*_protocol_routes(codec, terms), *_page_routes(_Pages(codec, ready), health)],
        middleware=[
            *_browsers(terms.allowed_origins),
            Middleware(HttpBoundary, terms=boundary),
        ],
        exception_handlers={HTTPException: _no_route},
    )
    starlette.router.redirect_slashes = False
    return starlette


def _protocol_routes(codec: Codec, terms: HttpTerms) -> list[Route]:
    counts = CountPages(codec, terms.body)
    pages = {
        "/v1/messages/count_tokens": counts.message_tokens,
        "/v1/responses/input_tokens": counts.input_tokens,
        "/tokenize": counts.tokenize,
        "/detokenize": counts.detokenize,
    }
    endpoints = {
        path: ChatEndpoint(codec, protocol, terms.body) for path, protocol in ANSWERS.items()
    }
    return [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in endpoints.items()),
        *(Route(path, page, methods=["POST"]) for path, page in pages.items()),
    ]


def _page_routes(pages: _Pages, health: HealthSettings) -> list[Route]:
    return [
        Route("/", pages.root),
        Route("/v1/models", pages.models),
        Route("/v1/models/{name:path}", pages.model),
        Route(health.liveness_path, pages.liveness),
        Route(health.readiness_path, pages.readiness),
    ]


EXPOSED = (
    *("x-request-id", "request-id", "retry-after", "retry-after-ms", "x-tokenway-route"),
    *RATE_HEADERS,
)


def _browsers(allowed_origins: tuple[str, ...]) -> list[Middleware]:
    """Lets pages of other origins ask and read; nobody is known by a cookie here."""
    if not allowed_origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=EXPOSED,
        )
    ]


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
