"""Records on six real nodes, 4+2: any two may be lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import pytest

from services.engine.kv.cache_settings import Spread
from services.engine.kv.record import BadRecord, opened
from services.engine.kv.store import Store, StoreTimeout
from services.engine.kv.stores.breaker import FAILURES
from services.engine.kv.stores.redis_store import namespace
from tests.engine.kv.stores.bed import (
    BRIEF_S,
    LAYOUT,
    LAYOUT_DIGEST,
    address_of,
    failure,
    has,
    put,
    record_of,
    settle,
    store_on,
    works,
)
from tests.redis_server import RedisServer, redis_servers, wait_for

NUMBERS = range(30)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[RedisServer]]:
    with redis_servers(tmp_path, 6) as running:
        yield running


@pytest.fixture
def store(nodes: list[RedisServer]) -> Iterator[Store]:
    with store_on(*(node.address for node in nodes), spread=Spread.ERASURE) as opened_store:
        yield opened_store


def key_of(number: int) -> bytes:
    return namespace(LAYOUT) + address_of(number).hex().encode()


def fragments_of(nodes: list[RedisServer], number: int) -> int:
    return sum(node.ask("EXISTS", key_of(number)) for node in nodes)


def test_a_record_lies_on_all_nodes_and_comes_back(nodes: list[RedisServer], store: Store) -> None:
    assert not has(store, 1)
    put(store, *NUMBERS)
    assert all(node.ask("DBSIZE") == len(NUMBERS) for node in nodes)
    assert all(has(store, number) for number in NUMBERS)
    assert store.present([address_of(number) for number in (1, 99, 2)]) == [True, False, True]
    assert store.flush() == len(NUMBERS)
    assert not has(store, 1)


def test_nothing_is_lost_with_any_two_nodes(nodes: list[RedisServer], store: Store) -> None:
    put(store, *range(15))
    for number, lost in enumerate(combinations(range(6), 2)):
        for index in lost:
            nodes[index].ask("UNLINK", key_of(number))
        assert has(store, number)


def test_two_dead_nodes_cost_no_record_and_three_say_why(
    nodes: list[RedisServer], store: Store
) -> None:
    put(store, *NUMBERS)
    nodes[0].kill()
    nodes[4].kill()
    assert all(has(store, number) for number in NUMBERS)
    put(store, 100)
    assert has(store, 100)
    assert store.present([address_of(100), address_of(101)]) == [True, False]
    nodes[2].kill()
    for _ in range(FAILURES + 1):
        assert "3 of 6 nodes fail: 127.0.0.1" in str(failure(has, store, 1))
        assert "3 of 6 nodes fail: 127.0.0.1" in str(failure(put, store, 1))
        assert failure(store.present, [address_of(1)])
    nodes[2].start()
    wait_for(lambda: works(store, 101))


def test_nodes_that_hang_are_not_waited_for(nodes: list[RedisServer]) -> None:
    with store_on(*(node.address for node in nodes), spread=Spread.ERASURE, timeout_s=60) as store:
        put(store, *NUMBERS)
        nodes[1].suspend()
        nodes[5].suspend()
        # Each read would take a minute if it waited.
        assert all(has(store, number) for number in NUMBERS)
        nodes[1].resume()
        nodes[5].resume()


def test_three_nodes_that_hang_are_late(nodes: list[RedisServer]) -> None:
    with store_on(
        *(node.address for node in nodes), spread=Spread.ERASURE, timeout_s=BRIEF_S
    ) as store:
        settle(store, 1)
        for node in nodes[:3]:
            node.suspend()
        assert isinstance(failure(has, store, 1), StoreTimeout)
        for node in nodes[:3]:
            node.resume()
        wait_for(lambda: works(store, 2))


@pytest.mark.parametrize("spoiled", [1, 2])
def test_spoiled_fragments_are_left_out(
    nodes: list[RedisServer], store: Store, spoiled: int
) -> None:
    put(store, 1)
    for node in nodes[:spoiled]:
        held = bytearray(node.ask("GET", key_of(1)))
        held[len(held) // 2] ^= 1
        node.ask("SET", key_of(1), bytes(held))
    assert has(store, 1)


def test_too_many_spoiled_fragments_are_no_record(nodes: list[RedisServer], store: Store) -> None:
    put(store, 1)
    for node in nodes[:3]:
        held = bytearray(node.ask("GET", key_of(1)))
        node.ask("SET", key_of(1), bytes(held[:-1]))
    record = store.get(address_of(1))
    assert record is not None
    with pytest.raises(BadRecord):
        opened(record, address_of(1), LAYOUT_DIGEST)
    # Nobody has it, whatever lies there: so it is written again.
    assert store.present([address_of(1)]) == [False]
    put(store, 1)
    assert store.present([address_of(1)]) == [True]
    assert has(store, 1)


def test_fragments_of_another_record_are_left_out(nodes: list[RedisServer], store: Store) -> None:
    put(store, 1, 2)
    for node in nodes[:2]:
        node.ask("COPY", key_of(2), key_of(1), "REPLACE")
    assert has(store, 1)


def test_two_writes_under_one_address_are_never_mixed(
    nodes: list[RedisServer], store: Store
) -> None:
    store.put(address_of(1), record_of(7))
    for node in nodes[:3]:
        node.ask("RENAME", key_of(1), "kept")
    put(store, 1)
    for node in nodes[:3]:
        node.ask("RENAME", "kept", key_of(1))
    # Three fragments of each: no record.
    assert store.get(address_of(1)) is None
    assert store.present([address_of(1)]) == [False]


def test_equal_writes_of_two_engines_are_one(nodes: list[RedisServer], store: Store) -> None:
    with store_on(*(node.address for node in nodes), spread=Spread.ERASURE) as other:
        put(store, 1)
        for node in nodes[:3]:
            node.ask("UNLINK", key_of(1))
        kept = [node.ask("GET", key_of(1)) for node in nodes]
        put(other, 1)
        assert [node.ask("GET", key_of(1)) for node in nodes[3:]] == kept[3:]
        assert has(store, 1)


def test_nodes_that_come_back_empty_are_mended_by_reading(
    nodes: list[RedisServer], store: Store
) -> None:
    """One node after another is started anew, and nothing is lost."""
    put(store, 1)
    for node in nodes:
        node.kill()
        node.start()
        wait_for(lambda: has(store, 1) and fragments_of(nodes, 1) == 6)


def test_a_flush_holds_although_nodes_are_dead(nodes: list[RedisServer], store: Store) -> None:
    put(store, 1)
    nodes[0].kill()
    assert store.flush() == 1
    assert not has(store, 1)
    for node in nodes[1:4]:
        node.kill()
    assert failure(store.flush)


def test_many_threads_read_while_nodes_die(nodes: list[RedisServer], store: Store) -> None:
    put(store, *NUMBERS)
    with ThreadPoolExecutor(6) as threads:
        reads = threads.map(lambda turn: has(store, NUMBERS[turn % len(NUMBERS)]), range(300))
        nodes[3].kill()
        nodes[5].suspend()
        assert all(reads)
    nodes[5].resume()
