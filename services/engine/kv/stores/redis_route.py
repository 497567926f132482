"""Which node has a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from services.engine.kv.stores.redis_connection import Command
from services.engine.kv.stores.redis_node import RedisNode


class RedisRoute(Protocol):
    """Finds nodes and asks them; for any thread. Calls raise StoreFailed and nothing else."""

    def ask(self, key: bytes, command: Command) -> Any:
        """The answer of the node that has `key`."""

    def share_out(self, keys: Sequence[bytes]) -> dict[RedisNode, list[int]]:
        """Indexes of the keys by the node that has them; without keys of unknown nodes."""

    def nodes(self) -> Sequence[RedisNode]:
        """All that hold keys."""

    def close(self) -> None: ...


class SingleNode:
    """One node has all keys."""

    def __init__(self, node: RedisNode) -> None:
        self._node = node

    def ask(self, key: bytes, command: Command) -> Any:  # noqa: ARG002 it has them all
        return self._node.ask([command])[0]

    def share_out(self, keys: Sequence[bytes]) -> dict[RedisNode, list[int]]:
        return {self._node: list(range(len(keys)))}

    def nodes(self) -> Sequence[RedisNode]:
        return [self._node]

    def close(self) -> None:
        self._node.close()
