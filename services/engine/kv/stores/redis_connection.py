"""One connection to a node: hiredis reads, Python writes, and one deadline bounds both."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import hiredis  # noqa: F401  the parser needs it, and says so late
import redis
from redis._parsers import Encoder, _HiredisParser
from redis.connection import PythonRespSerializer

from services.engine.kv.stores.node_address import NodeAddress
from services.engine.kv.stores.redis_access import RedisAccess

READ_BYTES = 1 << 20
"""Asked of the socket at once; blocks are hundreds of kilobytes."""

JOINED_BYTES = 6000
"""Arguments up to this are joined before they are sent, longer ones are sent as they are."""

Command = Sequence[str | bytes | memoryview | int]


class Deadline:
    """When the present operation must be over, by `time.monotonic`."""

    def __init__(self) -> None:
        self.at = 0.0

    def remaining_s(self) -> float:
        """Raises redis.TimeoutError when it is over."""
        remaining = self.at - time.monotonic()
        if remaining <= 0:
            raise redis.TimeoutError("the time limit is over")
        return remaining


class _BoundedParser(_HiredisParser):
    """A node that sends a few bytes at a time is bounded too: redis-py bounds each read alone."""

    deadline = Deadline()

    def read_from_socket(self, *_: Any, **__: Any) -> bool:
        remaining_s = self.deadline.remaining_s()
        return bool(super().read_from_socket(remaining_s))  # type: ignore[no-untyped-call]


class RedisConnection:
    """Connects when it is asked, and anew after an error; for one thread at a time."""

    def __init__(self, address: NodeAddress, access: RedisAccess) -> None:
        self._deadline = Deadline()
        self._connection = _connection(address, access, self._parser)

    def _parser(self, socket_read_size: int) -> _BoundedParser:
        parser = _BoundedParser(socket_read_size)  # type: ignore[no-untyped-call]
        parser.deadline = self._deadline
        return parser

    def ask(self, commands: Sequence[Command], deadline: float) -> list[Any]:
        """Sends them all, then reads as many answers; an answer may be a ResponseError.

        Raises:
            redis.RedisError, OSError, ValueError: the connection is of no more use, and closed.
        """
        self._deadline.at = deadline
        connection = self._connection
        try:
            self._connect()
            connection.send_packed_command(connection.pack_commands(commands))
            return [self._answer() for _ in commands]
        except BaseException:
            # What is on its way would be taken for the answer to the next command.
            connection.disconnect()
            raise

    def close(self) -> None:
        self._connection.disconnect()

    def _connect(self) -> None:
        """Connects anew where the node has closed the connection or sent what nobody asked."""
        self._deadline.remaining_s()
        if self._usable():
            return
        connection = self._connection
        connection.disconnect()
        connection.connect()
        # A node that refuses us says so, and closes while we would still be writing a record.
        connection.send_command("PING")
        self._answer()
        if not self._usable():
            raise redis.ConnectionError("the node says more than it was asked")

    def _usable(self) -> bool:
        try:
            return self._connection.is_connected and not self._connection.can_read()
        except (redis.RedisError, OSError):
            return False

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except redis.ConnectionError:
            raise
        except redis.ResponseError as error:
            return error


def _connection(address: NodeAddress, access: RedisAccess, parser: Any) -> redis.Connection:
    common: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "username": access.username,
        "password": access.password,
        "socket_timeout": access.timeout_s,
        "socket_connect_timeout": access.timeout_s,
        "socket_read_size": READ_BYTES,
        "parser_class": parser,
        # That of hiredis copies what it packs: a fifth of the rate for values of this size.
        "command_packer": PythonRespSerializer(
            JOINED_BYTES, Encoder("utf-8", "strict", decode_responses=False).encode
        ),
        "encoding_errors": "replace",
        "driver_info": None,
        "protocol": 2,
    }
    tls = access.tls
    if not tls.enabled:
        return redis.Connection(**common)
    return redis.SSLConnection(
        **common,
        ssl_ca_certs=None if tls.ca_file is None else str(tls.ca_file),
        ssl_certfile=None if tls.cert_file is None else str(tls.cert_file),
        ssl_keyfile=None if tls.key_file is None else str(tls.key_file),
    )
