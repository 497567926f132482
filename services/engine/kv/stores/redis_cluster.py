"""A Redis or Valkey cluster: the map of its slots, learned beside what is asked of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from redis.crc import key_slot

from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.stores.node_address import NodeAddress
from services.engine.kv.stores.redis_access import RedisAccess
from services.engine.kv.stores.redis_connection import Command
from services.engine.kv.stores.redis_node import Redirected, RedisNode
from services.engine.kv.stores.slot_map import NOTHING_KNOWN, slot_map

LEARNING_PAUSE_S = 1.0
"""The map is asked for at most this often."""


class RedisCluster:
    """`RedisRoute` over a cluster. Keys of a node that is down fail; all others go on.

    Nobody waits for the map but the first, and that one for the time limit of an operation.

    Args:
        seeds: nodes that may be asked for the map.
    """

    def __init__(self, seeds: Sequence[NodeAddress], access: RedisAccess) -> None:
        self._seeds = tuple(seeds)
        self._access = access
        self._lock = Lock()
        self._nodes: dict[NodeAddress, RedisNode] = {}
        self._map = NOTHING_KNOWN
        self._learner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cluster map")
        self._learning: Future[None] | None = None
        self._learned_at = float("-inf")

    def ask(self, key: bytes, command: Command) -> Any:
        self._know()
        slot = key_slot(key)
        owner = self._map.owner(slot)
        if owner is None:
            self._learn()
            raise StoreFailed(f"no node of the cluster has slot {slot}: see its CLUSTER INFO")
        try:
            return self._node(owner).ask([command])[0]
        except Redirected as redirected:
            return self._follow(slot, redirected, command)
        except StoreFailed:
            self._learn()  # another may have taken its slots
            raise

    def share_out(self, keys: Sequence[bytes]) -> dict[RedisNode, list[int]]:
        self._know()
        shares: dict[RedisNode, list[int]] = {}
        for index, key in enumerate(keys):
            owner = self._map.owner(key_slot(key))
            if owner is not None:
                shares.setdefault(self._node(owner), []).append(index)
        return shares

    def nodes(self) -> Sequence[RedisNode]:
        self._know()
        return [self._node(address) for address in self._map.addresses()]

    def close(self) -> None:
        self._learner.shutdown(wait=False, cancel_futures=True)
        for node in self._nodes.values():
            node.close()

    def _node(self, address: NodeAddress) -> RedisNode:
        with self._lock:
            if address not in self._nodes:
                self._nodes[address] = RedisNode(address, self._access)
            return self._nodes[address]

    def _follow(self, slot: int, redirected: Redirected, command: Command) -> Any:
        """Once only: a slot that moves on and on is not worth a prompt's time."""
        node = self._node(redirected.address)
        if redirected.asking:
            return node.ask([("ASKING",), command])[1]
        with self._lock:
            self._map = self._map.moved(slot, redirected.address)
        self._learn()
        return node.ask([command])[0]

    def _know(self) -> None:
        if self._map is not NOTHING_KNOWN:
            return
        learning = self._learn()
        if learning is None:
            raise StoreFailed("no node of the cluster could be asked for its slots a moment ago")
        try:
            learning.result(self._access.timeout_s)
        except TimeoutError:
            raise StoreTimeout("no node of the cluster tells its slots in time") from None

    def _learn(self) -> Future[None] | None:
        """Asks for the map on a thread of its own. None: it was asked for a moment ago."""
        with self._lock:
            if self._learning is None or self._learning.done():
                if time.monotonic() - self._learned_at < LEARNING_PAUSE_S:
                    return None
                self._learned_at = time.monotonic()
                try:
                    self._learning = self._learner.submit(self._ask_for_map)
                except RuntimeError:
                    return None  # the store was closed under a call that is still on its way
            return self._learning

    def _ask_for_map(self) -> None:
        failure: Exception = StoreFailed("the cluster has no node")
        for address in (*self._map.addresses(), *self._seeds):
            try:
                node = self._node(address)
                learned = slot_map(node.ask([("CLUSTER", "SLOTS")])[0], address)
            except (StoreFailed, ValueError) as error:
                failure = error
            else:
                with self._lock:
                    self._map = learned
                return
        raise StoreFailed(str(failure)) from failure
