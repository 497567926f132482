"""A store on Redis or Valkey: one key for each record, in a namespace for each layout."""

from __future__ import annotations

from collections.abc import Sequence

from services.engine.kv.record import Payload, layout_digest
from services.engine.kv.store import StoreFailed
from services.engine.kv.stores.redis_connection import Command
from services.engine.kv.stores.redis_node import RedisNode
from services.engine.kv.stores.redis_route import RedisRoute

KEYS_AT_ONCE = 512
"""Keys that one call to a node speaks of; a node does nothing else meanwhile."""


def namespace(layout_id: str) -> bytes:
    """What all keys of a layout begin with: `tokenway:` and the layout's digest in hex."""
    return b"tokenway:%s:" % layout_digest(layout_id).hex().encode()


class RedisStore:
    """`Store` on nodes that `route` finds. Records live for `ttl_s` after their last use."""

    def __init__(self, route: RedisRoute, layout_id: str, ttl_s: float) -> None:
        self._route = route
        self._namespace = namespace(layout_id)
        self._ttl_ms = round(ttl_s * 1000)

    def get(self, address: bytes) -> Payload | None:
        key = self._key(address)
        record = self._route.ask(key, ("GETEX", key, "PX", self._ttl_ms))
        if record is not None and not isinstance(record, bytes):
            raise StoreFailed(f"the store answers GETEX with {type(record).__name__}")
        return record

    def put(self, address: bytes, record: Payload) -> None:
        key = self._key(address)
        self._route.ask(key, ("SET", key, memoryview(record).cast("B"), "PX", self._ttl_ms))

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        """Those on nodes that fail count as absent. Raises StoreFailed when all nodes fail."""
        keys = [self._key(address) for address in addresses]
        found = [False] * len(keys)
        shares = self._route.share_out(keys)
        failures = []
        for node, indexes in shares.items():
            try:
                for index, has in zip(indexes, _exist(node, keys, indexes), strict=True):
                    found[index] = has
            except StoreFailed as failure:
                failures.append(failure)
        if failures and len(failures) == len(shares):
            raise failures[0]
        return found

    def flush(self) -> int:
        """Raises StoreFailed when a node fails, after all others are empty."""
        dropped, failures = 0, []
        for node in self._route.nodes():
            try:
                dropped += self._flush(node)
            except StoreFailed as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return dropped

    def close(self) -> None:
        self._route.close()

    def _key(self, address: bytes) -> bytes:
        return self._namespace + address.hex().encode()

    def _flush(self, node: RedisNode) -> int:
        dropped, cursor = 0, b"0"
        while True:
            scan = ("SCAN", cursor, "MATCH", self._namespace + b"*", "COUNT", KEYS_AT_ONCE)
            cursor, keys = _scanned(node.ask([scan])[0])
            if keys:
                # One by one: in a cluster a command has the keys of one slot.
                dropped += sum(node.ask([("UNLINK", key) for key in keys]))
            if cursor == b"0":
                return dropped


def _scanned(answer: object) -> tuple[bytes, list[bytes]]:
    match answer:
        case [bytes() as cursor, [*keys]]:
            return cursor, [key for key in keys if isinstance(key, bytes)]
    raise StoreFailed("the store answers SCAN with something else")


def _exist(node: RedisNode, keys: Sequence[bytes], indexes: Sequence[int]) -> list[bool]:
    found: list[bool] = []
    for start in range(0, len(indexes), KEYS_AT_ONCE):
        part: list[Command] = [
            ("EXISTS", keys[index]) for index in indexes[start : start + KEYS_AT_ONCE]
        ]
        found += [answer == 1 for answer in node.ask(part)]
    return found
