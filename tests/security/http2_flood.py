"""HTTP/2 as far as it takes to open calls and reset them at once."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress

from tests.waiting import PATIENCE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0x0, 0x1, 0x3, 0x4, 0x6, 0x7
END_HEADERS, END_STREAM, ACK = 0x4, 0x1, 0x1
CANCEL = struct.pack(">I", 8)


async def flood(address: str, path: str, message: bytes, count: int) -> int:
    """Opens so many calls of a method, each with its message, and cancels each at once.

    Returns how many answers came before the server had read all, or had enough.
    """
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(PREFACE + _frame(SETTINGS, 0, 0, b""))
    called = _headers(path)
    said = struct.pack(">BI", 0, len(message)) + message
    for number in range(count):
        stream = 2 * number + 1
        writer.write(
            _frame(HEADERS, END_HEADERS, stream, called)
            + _frame(DATA, END_STREAM, stream, said)
            + _frame(RST_STREAM, 0, stream, CANCEL)
        )
    writer.write(_frame(PING, 0, 0, b"all done"))
    answers = 0
    try:
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    kind, flags, payload = await _read(reader)
                    answers += kind == HEADERS
                    if kind == GOAWAY or (kind == PING and flags & ACK and payload == b"all done"):
                        return answers
    finally:
        writer.transport.abort()
    return answers


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


async def _read(reader: asyncio.StreamReader) -> tuple[int, int, bytes]:
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    return head[3], head[4], await reader.readexactly(length)


def _headers(path: str) -> bytes:
    """Literal fields that no table keeps."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "x",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())


def _text(text: str) -> bytes:
    assert len(text) < 127
    return bytes([len(text)]) + text.encode()
