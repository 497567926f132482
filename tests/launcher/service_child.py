"""A small service that listens, tells it, and can be told to fail; run by the launcher's tests.

It writes a line for each event of its life to the file EVENTS.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import grpc
from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.types.v1 import types_pb2

from services.shared import logs
from services.shared.announce import announce
from services.shared.health import Readiness
from services.shared.server import CannotListen, serving
from services.shared.settings import LogLevel
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.server_credentials import mutual

SERVICE = sys.argv[1]
_log = logging.getLogger(__name__)


class Engine(engine_pb2_grpc.EngineServiceServicer):
    async def Describe(self, request: Any, context: Any) -> engine_pb2.DescribeResponse:  # noqa: N802, ARG002
        return engine_pb2.DescribeResponse(
            model=Path(os.environ["TOKENWAY_EXECUTOR__MODEL_PATH"]).name,
            model_fingerprint="0123456789abcdef",
            vocabulary_size=49152,
            context_length=8192,
            block_size=16,
            device="cpu",
            load=types_pb2.Load(total_blocks=1000),
        )

    async def GetCacheStats(  # noqa: N802
        self,
        request: Any,  # noqa: ARG002
        context: Any,  # noqa: ARG002
    ) -> engine_pb2.GetCacheStatsResponse:
        return engine_pb2.GetCacheStatsResponse(
            enabled=True, type=os.environ.get("FAIL_CACHE", os.environ["TOKENWAY_CACHE__TYPE"])
        )


def register(server: grpc.aio.Server) -> None:
    if SERVICE == "engine":
        engine_pb2_grpc.add_EngineServiceServicer_to_server(Engine(), server)  # type: ignore[abstract]  # enough here


class Door(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def http_door(doors: dict[str, str]) -> Iterator[None]:
    if SERVICE != "codec":
        yield
        return
    server = HTTPServer(("127.0.0.1", int(os.environ["TOKENWAY_SERVER__PORT"])), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    doors["http"] = f"127.0.0.1:{server.server_port}"
    yield
    server.shutdown()
    server.server_close()


def credentials() -> grpc.ServerCredentials | None:
    if os.environ["TOKENWAY_SECURITY__MTLS"] == "false":
        return None
    folder = Path(os.environ["TOKENWAY_SECURITY__CERTIFICATES"])
    return mutual(partial(read_certificates, folder))


def event(*words: object) -> None:
    with Path(os.environ["EVENTS"]).open("a") as file:
        file.write(" ".join(map(str, (SERVICE, *words))) + "\n")


async def run() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(15, stop.set)
    kind = "GRPC_PORT" if SERVICE == "codec" else "PORT"
    port = os.environ[f"TOKENWAY_SERVER__{kind}"]
    replicas = os.environ.get("TOKENWAY_REPLICAS", "").split(",")
    doors: dict[str, str] = {}
    listens = serving(f"127.0.0.1:{port}", register, [], grace_s=0, credentials=credentials())
    async with listens as door:
        with http_door(doors):
            event("started", os.getpid(), door.address, *replicas)
            doors["metrics"] = f"127.0.0.1:{os.environ['TOKENWAY_METRICS__PORT']}"
            announce(doors | {"grpc": door.address})
            if os.environ.get("FAIL_LATE") == SERVICE:
                raise RuntimeError("the weights burnt")
            await door.health.set(Readiness.READY)
            await stop.wait()
            if os.environ.get("STUBBORN") == SERVICE:
                await asyncio.Event().wait()
    event("ended", os.getpid())


def main() -> None:
    logs.start(SERVICE, LogLevel.INFO)
    if os.environ.get("FAIL_EARLY") == SERVICE:
        _log.error("executor.threads must be >= 1, got 0")
        sys.exit(2)
    try:
        asyncio.run(run())
    except CannotListen as error:
        _log.error("%s", error)
        sys.exit(2)


main()
