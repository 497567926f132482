"""What others log in our processes, and what of it nobody needs."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from services.shared import logs
from services.shared.channel import open_channel
from services.shared.server import serving
from services.shared.settings import LogLevel

MESSAGE = b"x" * 200_000
METHOD = "/test.Flood/Flood"
LEFT = "a reader left in the middle of a message"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    logs.start("engine", LogLevel.DEBUG, stream)
    yield stream
    root.handlers[:] = before[0]
    root.setLevel(before[1])


class Flood(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in stubs only
    """Sends more than anybody reads."""

    def service(self, _: Any) -> Any:
        async def flood(_: bytes, __: Any) -> AsyncIterator[bytes]:
            while True:
                yield MESSAGE

        return grpc.unary_stream_rpc_method_handler(flood)


@asynccontextmanager
async def flooding() -> AsyncIterator[grpc.aio.Channel]:
    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((Flood(),))

    async with (
        serving("127.0.0.1:0", register, [], grace_s=0) as served,
        open_channel(served.address) as channel,
    ):
        yield channel


async def test_a_reader_that_leaves_in_the_middle_of_a_message_is_no_error(
    lines: io.StringIO,
) -> None:
    async with flooding() as channel, asyncio.timeout(60):
        while LEFT not in lines.getvalue():
            call = channel.unary_stream(METHOD, None, None)(b"")
            for _ in range(5):
                await call.read()
            call.cancel()
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert {line["level"] for line in told if line["message"] == LEFT} == {"debug"}
    assert not [line for line in told if line["level"] == "error" or "exception" in line]


def test_other_errors_of_a_server_are_told(lines: io.StringIO) -> None:
    try:
        json.loads("{}")["x"]
    except KeyError:
        logging.getLogger("grpc._cython.cygrpc").exception("Unexpected")
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert "KeyError" in line["exception"]
