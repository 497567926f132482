"""HTTP for simulated clients: a request as prepared bytes, and as little work as can be."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RETRY_MS = re.compile(rb"\r\nretry-after-ms: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The status, the body, and how long the server asks to wait before the next try."""

    status: int
    body: bytes
    retry_after_s: float


def request_bytes(path: str, body: Mapping[str, Any], key: str) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: codec\r\nx-api-key: {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


class Connection:
    """One kept connection; answers must have a content-length."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> Answer:
        """Raises OSError or asyncio.IncompleteReadError when the connection breaks."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, int(self._port))
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status, length = _STATUS.match(head), _LENGTH.search(head)
        if status is None or length is None:
            raise RuntimeError(f"no answer that could be read: {head[:200]!r}")
        retry = _RETRY_MS.search(head)
        return Answer(
            status=int(status[1]),
            body=await reader.readexactly(int(length[1])),
            retry_after_s=int(retry[1]) / 1000 if retry else 0.0,
        )

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
