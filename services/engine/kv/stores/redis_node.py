"""One node of a store: a few connections, a time limit, and rest when it fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, LifoQueue
from typing import Any

import redis

from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.stores.breaker import Breaker
from services.engine.kv.stores.node_address import NodeAddress
from services.engine.kv.stores.redis_access import RedisAccess
from services.engine.kv.stores.redis_connection import Command, RedisConnection
from services.engine.kv.stores.redis_failures import failure_of


class Redirected(StoreFailed):
    """A node of a cluster sends us to another.

    Args:
        address: of the other one.
        asking: for this once only.
    """

    def __init__(self, text: str, address: NodeAddress, *, asking: bool) -> None:
        super().__init__(text)
        self.address = address
        self.asking = asking


class RedisNode:
    """Asks one node; for any thread. Each call ends within the time limit of `access`."""

    def __init__(self, address: NodeAddress, access: RedisAccess) -> None:
        self.address = address
        self.breaker = Breaker()
        self._timeout_s = access.timeout_s
        self._idle: LifoQueue[RedisConnection] = LifoQueue()
        for _ in range(access.connections):
            self._idle.put(RedisConnection(address, access))

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to commands that are sent together.

        Raises:
            StoreFailed: the node cannot be asked, or one of the answers is an error.
        """
        if not self.breaker.admits():
            raise StoreFailed(f"{self.address} is left alone for a while, since it failed")
        deadline = time.monotonic() + self._timeout_s
        try:
            connection = self._idle.get(timeout=self._timeout_s)
        except Empty:
            raise StoreTimeout(
                f"{self.address}: no connection was free within {self._timeout_s} s"
            ) from None
        try:
            answers = connection.ask(commands, deadline)
        # MemoryError: a damaged length asks for more than there is.
        except (redis.RedisError, OSError, ValueError, MemoryError) as error:
            self.breaker.failed()
            raise failure_of(error, str(self.address), self._timeout_s) from None
        finally:
            self._idle.put(connection)
        self.breaker.succeeded()
        for answer in answers:
            if isinstance(answer, Exception):
                raise self._refusal(answer)
        return answers

    def close(self) -> None:
        """Ends the connections that are idle; others end with their use."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    def _refusal(self, answer: Exception) -> StoreFailed:
        failure = failure_of(answer, str(self.address), self._timeout_s)
        if isinstance(answer, redis.exceptions.AskError):
            asking = not isinstance(answer, redis.exceptions.MovedError)
            host = answer.host or self.address.host
            return Redirected(str(failure), NodeAddress(host, answer.port), asking=asking)
        return failure
