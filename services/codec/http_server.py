"""The HTTP door's server: it listens, and drains when it is told to stop."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial

import uvicorn
from starlette.applications import Starlette

from services.codec.connection_settings import ConnectionSettings
from services.codec.http_connection import ConnectionTerms, HttpConnection
from services.codec.open_connections import OpenConnections
from services.shared.server import CannotListen
from services.shared.tasks import Tasks

BACKLOG = 2048


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """How a door takes connections.

    Args:
        settings: what callers may hold.
        speaks_for_many: whether an address is a proxy's.
        tls: HTTPS where it is given.
    """

    settings: ConnectionSettings = field(default_factory=ConnectionSettings)
    speaks_for_many: Callable[[str], bool] = lambda _: False
    tls: ssl.SSLContext | None = None


class HttpServer(uvicorn.Server):
    """Leaves signals to the process. `address` is where it listens."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self.address = address

    @property
    def connections(self) -> int:
        """Those that are open."""
        return len(self.server_state.connections)

    def drain(self) -> None:
        """Takes no connection any more and closes those that are idle."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def listening(
    application: Starlette,
    host: str,
    port: int,
    *,
    drain_s: float,
    door: Door | None = None,
) -> AsyncIterator[HttpServer]:
    """Serves inside the block, as `door` says; port 0 takes a free one.

    At the end no connection is taken any more, and running requests have `drain_s` to end.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    door = door or Door()
    settings, tls = door.settings, door.tls
    connections = OpenConnections(settings.max_open, settings.max_per_address, door.speaks_for_many)
    terms = ConnectionTerms(settings=settings, connections=connections)
    config = uvicorn.Config(
        application,
        http=partial(HttpConnection, terms),  # type: ignore[arg-type]  # it is only called
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_keep_alive=settings.idle_timeout_s,  # type: ignore[arg-type]  # for call_later
        ws="none",
        timeout_graceful_shutdown=max(1, round(drain_s)),
        ssl_context_factory=None if tls is None else lambda *_: tls,
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
    """Connections inherit what is set here.

    Event loops that are given a socket do not see that it is TCP. So Nagle's algorithm would stay
    on, and every answer in two writes would wait 40 ms for the client's delayed acknowledgement.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"cannot listen at {host}:{port}: the port is taken or the host is not of this machine"
        ) from error
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound
