"""A store on a real cluster of three, which loses nodes and moves slots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.crc import key_slot

from services.engine.kv.cache_settings import Spread
from services.engine.kv.stores.redis_store import namespace
from tests.engine.kv.stores.bed import (
    BRIEF_S,
    LAYOUT,
    address_of,
    failure,
    has,
    put,
    store_on,
    works,
)
from tests.redis_server import SLOTS, RedisServer, free_port, redis_cluster, wait_for

NUMBERS = range(60)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[RedisServer]]:
    with redis_cluster(tmp_path) as nodes:
        yield nodes


def slot_of(number: int) -> int:
    return key_slot(namespace(LAYOUT) + address_of(number).hex().encode())


def node_of(number: int) -> int:
    return slot_of(number) * 3 // SLOTS


def test_records_lie_on_all_nodes_and_come_back(cluster: list[RedisServer]) -> None:
    with store_on(cluster[0].address, spread=Spread.CLUSTER) as store:
        put(store, *NUMBERS)
        assert all(node.ask("DBSIZE") > 0 for node in cluster)
        assert all(has(store, number) for number in NUMBERS)
        addresses = [address_of(number) for number in (0, 1000, 1, 1001)]
        assert store.present(addresses) == [True, False, True, False]
        assert store.flush() == len(NUMBERS)
        assert not any(has(store, number) for number in NUMBERS)


def test_keys_of_a_dead_node_fail_and_all_others_go_on(cluster: list[RedisServer]) -> None:
    with store_on(*(node.address for node in cluster), spread=Spread.CLUSTER) as store:
        put(store, *NUMBERS)
        cluster[1].kill()
        for _ in range(3):
            for number in NUMBERS:
                if node_of(number) == 1:
                    assert failure(has, store, number)
                else:
                    assert has(store, number)
        found = store.present([address_of(number) for number in NUMBERS])
        assert found == [node_of(number) != 1 for number in NUMBERS]
        cluster[1].start()


def test_a_seed_that_is_dead_or_hangs_hides_no_cluster(cluster: list[RedisServer]) -> None:
    cluster[0].suspend()
    seeds = (f"127.0.0.1:{free_port()}", cluster[0].address, cluster[2].address)
    with store_on(*seeds, spread=Spread.CLUSTER, timeout_s=BRIEF_S) as store:
        number = next(number for number in NUMBERS if node_of(number) == 2)
        wait_for(lambda: works(store, number))
    cluster[0].resume()


def test_a_cluster_that_hangs_costs_the_time_limit_and_then_nothing(
    cluster: list[RedisServer],
) -> None:
    for node in cluster:
        node.suspend()
    with store_on(cluster[0].address, spread=Spread.CLUSTER, timeout_s=BRIEF_S) as store:
        failures = [failure(has, store, 1) for _ in range(50)]
        assert all(failures)
        for node in cluster:
            node.resume()
        wait_for(lambda: works(store, 1))


def test_a_slot_that_moves_is_followed(cluster: list[RedisServer]) -> None:
    with store_on(cluster[0].address, spread=Spread.CLUSTER) as store:
        number = next(number for number in NUMBERS if node_of(number) == 0)
        put(store, number)
        source, target = cluster[0], cluster[1]
        ids = [node.ask("CLUSTER", "MYID").decode() for node in (source, target)]
        slot = slot_of(number)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        assert has(store, number)  # it has not moved yet
        key = namespace(LAYOUT) + address_of(number).hex().encode()
        source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        assert has(store, number)  # the source sends us there, for once
        for node in (target, source, cluster[2]):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
        assert has(store, number)
        assert works(store, number)
