"""The one connection to the store; commands that wait go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
import redis.asyncio

from services.shared.access.shared_quotas.answer import Argument
from services.shared.access.shared_quotas.store_address import StoreAddress

FAILURES = (redis.RedisError, OSError, ValueError)
"""What tells that the store cannot be asked; TimeoutError is an OSError."""


class StoreConnection:
    """Connects when it is asked, and anew after an error; for one task at a time."""

    def __init__(self, address: StoreAddress) -> None:
        self._connection = _connection(address)

    async def ask(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Sends them all, then reads as many answers; an answer may be a ResponseError.

        Raises:
            FAILURES: the connection is of no more use, and closed.
        """
        connection = self._connection
        try:
            await self._connect()
            await connection.send_packed_command(connection.pack_commands(commands))
            return [await self._answer() for _ in commands]
        except BaseException:
            # What is on its way would be taken for the answer to the next command.
            await self.close()
            raise

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)

    async def _connect(self) -> None:
        """Connects anew where the server has closed the connection or sent what nobody asked."""
        connection = self._connection
        if connection.is_connected and await connection.can_read():
            await connection.disconnect(nowait=True)
        if connection.is_connected:
            return
        await connection.connect()
        # A server that asks for a password says so to this, and hangs up on what is longer.
        await connection.send_command("PING")
        await connection.read_response()

    async def _answer(self) -> Any:
        try:
            return await self._connection.read_response()
        except redis.ConnectionError:
            raise
        except redis.ResponseError as error:
            return error


def _connection(address: StoreAddress) -> redis.asyncio.Connection:
    """Without limits of its own: whoever asks has one."""
    common: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "db": address.database,
        "username": address.username,
        "password": address.password,
        "socket_timeout": None,
        "socket_connect_timeout": None,
        "encoding_errors": "replace",
        "driver_info": None,
        "protocol": 2,
    }
    if not address.is_tls:
        return redis.asyncio.Connection(**common)
    ca_file = None if address.ca_file is None else str(address.ca_file)
    return redis.asyncio.SSLConnection(**common, ssl_ca_certs=ca_file)
