"""Peers that speak no protocol, at every port: nothing is run, nobody is disturbed."""

from __future__ import annotations

import os
import pickle  # noqa: TID251  # the attack
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tokenway.stream.v1.stream_pb2 import GenerateRequest

from tests.integration.stack import PATIENCE_S, Stack
from tests.raw_peer import speak
from tests.security.http_exchange import LEAKS, serves
from tests.waiting import until

PORTS = ("http", "codec", "router", "engine", "metrics")
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
TRUNCATED_REQUEST = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"
GARBAGE = {
    "random": Random(3).randbytes(4096),  # noqa: S311 no secret
    "zeros": b"\0" * 4096,
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500,
    "http2-random": HTTP2 + Random(4).randbytes(4096),  # noqa: S311 no secret
    "http2-huge-frame": HTTP2 + SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 4096,
    "http2-zero-stream": HTTP2 + SETTINGS + b"\x00\x00\x04\x01\x04\x00\x00\x00\x00" + b"\x82" * 4,
    "http1-truncated": TRUNCATED_REQUEST,
    "http1-two-lengths": TRUNCATED_REQUEST.replace(b"host: x", b"host: x\r\ncontent-length: 1"),
    "http1-bad-length": TRUNCATED_REQUEST.replace(b"99", b"-1"),
    "http1-bad-chunk": TRUNCATED_REQUEST.replace(
        b"content-length: 99", b"transfer-encoding: chunked"
    ),
}


class Payload:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._path),)


@pytest.fixture(params=PORTS)
def address(simulated_stack: Stack, request: pytest.FixtureRequest) -> str:
    stack = simulated_stack
    return {
        "http": stack.codec.doors["http"],
        "codec": stack.codec.grpc,
        "router": stack.router.grpc,
        "engine": stack.engines[0].grpc,
        "metrics": stack.engines[0].doors["metrics"],
    }[request.param]


@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_hung_up_on(simulated_stack: Stack, address: str, said: bytes) -> None:
    heard = await speak(address, said)
    assert not LEAKS.search(heard.decode("latin-1"))
    assert serves(simulated_stack)


@pytest.mark.parametrize("frame", [b"", HTTP2 + SETTINGS, TRUNCATED_REQUEST[:-1]])
async def test_a_pickle_is_not_opened(
    simulated_stack: Stack, address: str, frame: bytes, tmp_path: Path
) -> None:
    trap = tmp_path / "opened"
    for protocol in (0, 2, pickle.HIGHEST_PROTOCOL):
        await speak(address, frame + pickle.dumps(Payload(trap), protocol))
    assert serves(simulated_stack)
    assert not trap.exists()


PATH = b"/tokenway.stream.v1.TokenStreamService/Generate"
HEAD = b"".join(
    (
        b"\x83\x86\x44%c" % len(PATH) + PATH,  # POST, http, path
        b"\x41\x01x",  # authority
        b"\x5f\x10application/grpc",
        b"\x40\x02te\x08trailers",
    )
)


MESSAGE = GenerateRequest(prompt_ids=[300] * 40).SerializeToString()
DATA = b"\0" + len(MESSAGE).to_bytes(4, "big") + MESSAGE


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + payload


def opened_and_reset(stream: int) -> bytes:
    """HTTP/2: a call of Generate that is taken back at once."""
    opened = frame(1, 4, stream, HEAD) + frame(0, 1, stream, DATA)
    return opened + frame(3, 0, stream, b"\0\0\0\x08")


async def test_a_flood_of_calls_taken_back_leaves_others_alone(simulated_stack: Stack) -> None:
    stack = simulated_stack
    flood = b"".join(opened_and_reset(stream) for stream in range(1, 10_000, 2))
    for service in stack.services:
        await speak(service.grpc, HTTP2 + SETTINGS + flood)
        assert serves(stack)
    await until(lambda: not stack.router.describe().load.running)
    for engine in stack.engines:
        load = engine.describe().load
        assert load.waiting == load.outstanding_tokens == 0
        assert load.free_blocks + load.cached_blocks == load.total_blocks


@pytest.fixture
def idle_peers(simulated_stack: Stack) -> Iterator[list[socket.socket]]:
    """Peers that began to speak to every port and do not go on."""
    stack = simulated_stack
    doors = [door for service in stack.services for door in service.doors.values()]
    with ExitStack() as peers:
        opened = []
        for door in doors:
            host, _, port = door.rpartition(":")
            for beginning in (b"", b"POST /v1/mess", TRUNCATED_REQUEST[:40], TRUNCATED_REQUEST):
                for _ in range(8):
                    peer = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
                    opened.append(peers.enter_context(peer))
                    peer.sendall(beginning)
        yield opened


def test_peers_that_do_not_go_on_keep_nobody_waiting(
    simulated_stack: Stack, idle_peers: list[socket.socket]
) -> None:
    assert len(idle_peers) > 100
    assert serves(simulated_stack)


@pytest.mark.parametrize(
    "header",
    [b"x-a: " + b"a" * 2_000_000, b"\r\n".join(b"x-%d: a" % n for n in range(100_000)), b"x\0: 1"],
    ids=["long", "many", "nul"],
)
async def test_headers_beyond_any_use_are_refused(simulated_stack: Stack, header: bytes) -> None:
    head = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n" + header + b"\r\n\r\n"
    heard = await speak(simulated_stack.codec.doors["http"], head)
    assert not heard or heard.startswith(b"HTTP/1.1 4")
    assert b"200" not in heard[:20]
    assert serves(simulated_stack)
