"""One node: it rests when it fails, and sends us on when it is one of a cluster."""

from __future__ import annotations

import pytest

from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.stores.breaker import FAILURES
from services.engine.kv.stores.node_address import NodeAddress, node_address
from services.engine.kv.stores.redis_access import RedisAccess
from services.engine.kv.stores.redis_node import Redirected, RedisNode
from tests.engine.kv.stores.answering import answering
from tests.engine.kv.stores.bed import BRIEF_S, failure


def node_at(address: str, timeout_s: float = 5.0) -> RedisNode:
    return RedisNode(node_address(address), RedisAccess(timeout_s=timeout_s, connections=2))


def test_a_node_that_refuses_connections_is_not_asked_for_long() -> None:
    with answering(b"") as node:
        address = node.address
    resting = node_at(address)
    failures = [str(failure(resting.ask, [("PING",)])) for _ in range(FAILURES + 2)]
    assert ["left alone" in told for told in failures] == [False] * FAILURES + [True, True]


def test_a_node_that_is_silent_is_not_asked_for_long() -> None:
    with answering(b"") as node:
        silent = node_at(node.address, BRIEF_S)
        failures = [failure(silent.ask, [("PING",)]) for _ in range(FAILURES + 20)]
        assert all(isinstance(failed, StoreTimeout) for failed in failures[:FAILURES])
        assert node.accepted == FAILURES


def test_an_error_in_an_answer_is_no_reason_to_rest() -> None:
    with answering(b"-OOM command not allowed\r\n") as node:
        full = node_at(node.address)
        for _ in range(2 * FAILURES):
            with pytest.raises(StoreFailed, match="is full"):
                full.ask([("SET", "key", "value")])
        assert not full.breaker.is_open


@pytest.mark.parametrize(
    ("answer", "host", "asking"),
    [
        (b"-MOVED 7 10.0.0.1:7001\r\n", "10.0.0.1", False),
        (b"-ASK 7 10.0.0.1:7001\r\n", "10.0.0.1", True),
        (b"-MOVED 7 :7001\r\n", "127.0.0.1", False),
    ],
)
def test_a_node_of_a_cluster_tells_where_to_go(answer: bytes, host: str, asking: bool) -> None:
    with answering(answer) as node, pytest.raises(Redirected) as raised:
        node_at(node.address).ask([("GET", "key")])
    assert raised.value.address == NodeAddress(host, 7001)
    assert raised.value.asking is asking
