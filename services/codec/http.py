"""The HTTP door: routes, and the server that listens."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
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
from services.shared.server import CannotListen
from services.shared.settings import HealthSettings
from services.shared.tasks import Tasks

BACKLOG = 2048
KEEP_ALIVE_S = 75
"""Longer than the minute after which common proxies close an idle connection."""


def app(codec: Codec, ready: Ready, health: HealthSettings, max_body_bytes: int) -> Starlette:
    """Every route of the door."""

    async def root(_: HttpRequest) -> Response:
        return Response()

    async def models(_: HttpRequest) -> Response:
        return _json(model_list(codec.model))

    async def model(request: HttpRequest) -> Response:
        return _json(model_entry(codec.model, request.path_params["name"]))

    async def count_tokens(request: HttpRequest) -> Response:
        body = await body_of(request.scope, request.receive, max_body_bytes)
        parsed = await codec.parse(parse_count, body)
        ids = await codec.prompt_ids(parsed, exchange_of(request.scope))
        return _json(token_count(len(ids)))

    async def liveness(_: HttpRequest) -> Response:
        return JSONResponse({"status": "alive"})

    async def readiness(_: HttpRequest) -> Response:
        fault = ready.fault
        if fault is not None:
            return JSONResponse({"status": "not ready", "reason": fault}, 503)
        return JSONResponse({"status": "ready"})

    chat = ChatEndpoint(codec, CHAT_COMPLETIONS, max_body_bytes)
    messages = ChatEndpoint(codec, MESSAGES, max_body_bytes)
    starlette = Starlette(
        routes=[
            Route("/", root),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route(health.liveness_path, liveness),
            Route(health.readiness_path, readiness),
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


class HttpServer(uvicorn.Server):
    """Leaves signals to the process. `address` is where it listens."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self.address = address

    def drain(self) -> None:
        """Takes no connection any more and closes those that are idle."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def listening(
    application: Starlette, host: str, port: int, *, drain_s: float
) -> AsyncIterator[HttpServer]:
    """Serves inside the block; port 0 takes a free one.

    At the end no connection is taken any more, and running requests have `drain_s` to end.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        ws="none",
        timeout_graceful_shutdown=max(1, round(drain_s)),
    )
    bound = _bind(host, port)
    server = HttpServer(config, f"{host}:{bound.getsockname()[1]}")

    def crashed(_: str, error: Exception) -> None:
        raise error

    async with Tasks(crashed) as tasks:
        serving = tasks.start("http", server.serve([bound]))
        try:
            yield server
        finally:
            server.drain()
            await serving


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"cannot listen at {host}:{port}: the port is taken or the host is not of this machine"
        ) from error
