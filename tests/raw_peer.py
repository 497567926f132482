"""A peer that speaks whatever bytes it is given, and no protocol."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

PATIENCE_S = 60


async def speak(address: str, said: bytes) -> bytes:
    """Sends bytes to `host:port` and gives what came back until the server closed."""
    return await asyncio.to_thread(_speak, address, said)


def _speak(address: str, said: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    heard = b""
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE_S) as peer,
        suppress(ConnectionError),
    ):
        peer.sendall(said)
        with suppress(OSError):  # the server may have closed already
            peer.shutdown(socket.SHUT_WR)
        while chunk := peer.recv(1 << 16):
            heard += chunk
    return heard
