"""A store on one Redis, over a real server that is killed, held, filled and robbed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from services.engine.kv.record import BadRecord, opened
from services.engine.kv.store import Store, StoreFailed, StoreTimeout
from services.engine.kv.stores.redis_store import KEYS_AT_ONCE
from services.shared.stream.events import CacheMiss
from tests.engine.kv.stores.bed import (
    BLOCK_BYTES,
    BRIEF_S,
    LAYOUT_DIGEST,
    address_of,
    block_of,
    failure,
    has,
    put,
    record_of,
    settle,
    store_on,
    works,
)
from tests.faults.proxy import Proxy, proxy_to
from tests.redis_server import RedisServer, ServerOptions, redis_server, wait_for


def key_of(number: int, layout: bytes = LAYOUT_DIGEST) -> bytes:
    """As the documents have it for operators."""
    return b"tokenway:%s:%s" % (layout.hex().encode(), address_of(number).hex().encode())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis") as running:
        yield running


@contextmanager
def through_proxy(server: RedisServer, timeout_s: float) -> Iterator[tuple[Proxy, Store]]:
    with proxy_to(server.address) as proxy, store_on(proxy.address, timeout_s=timeout_s) as store:
        yield proxy, store


def miss_of(store: Store, number: int) -> CacheMiss | None:
    """How a reader notices that it is not the record; None where it is."""
    record = store.get(address_of(number))
    assert record is not None
    try:
        payload = opened(record, address_of(number), LAYOUT_DIGEST)
    except BadRecord as bad:
        return bad.miss
    assert payload == block_of(number)
    return None


def test_a_record_comes_back_as_it_was_put(server: RedisServer) -> None:
    with store_on(server.address) as store:
        assert not has(store, 1)
        put(store, 1)
        assert has(store, 1)
        put(store, 1)
        assert has(store, 1)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_record_may_be_any_bytes(server: RedisServer, kind: type) -> None:
    with store_on(server.address) as store:
        store.put(address_of(1), kind(record_of(1)))
        store.put(address_of(2), kind(b"\r\n$-1\r\n"))
        assert has(store, 1)
        assert store.get(address_of(2)) == b"\r\n$-1\r\n"


def test_presence_is_told_in_the_order_of_the_question(server: RedisServer) -> None:
    with store_on(server.address) as store:
        put(store, 2, 3)
        assert store.present([address_of(number) for number in (1, 2, 3, 4, 2)]) == [
            *(False, True, True, False, True)
        ]
        assert store.present([]) == []


def test_presence_of_many_is_asked_in_parts(server: RedisServer) -> None:
    with store_on(server.address) as store:
        put(store, 0, KEYS_AT_ONCE, 2 * KEYS_AT_ONCE)
        found = store.present([address_of(number) for number in range(2 * KEYS_AT_ONCE + 1)])
        assert [number for number, there in enumerate(found) if there] == [
            *(0, KEYS_AT_ONCE, 2 * KEYS_AT_ONCE)
        ]


def test_a_layout_is_a_namespace_of_its_own(server: RedisServer) -> None:
    with store_on(server.address) as store, store_on(server.address, layout="other") as other:
        server.ask("SET", "key of somebody", "value")
        put(store, 1, 2)
        assert not has(other, 1)
        put(other, 1)
        assert store.flush() == 2
        assert not has(store, 1)
        assert has(other, 1)
        assert server.ask("GET", "key of somebody") == b"value"


def test_a_flush_drops_more_than_one_scan_finds(server: RedisServer) -> None:
    with store_on(server.address) as store:
        for number in range(3 * KEYS_AT_ONCE):
            store.put(address_of(number), b"record")
        assert store.flush() == 3 * KEYS_AT_ONCE
        assert store.flush() == 0
        assert server.ask("DBSIZE") == 0


def test_a_record_lives_for_a_time_after_its_last_use(server: RedisServer) -> None:
    with store_on(server.address, ttl_s=600) as store:
        put(store, 1, 2)
        for number in (1, 2):
            assert 0 < server.ask("PTTL", key_of(number)) <= 600_000
            server.ask("PEXPIRE", key_of(number), 60_000)
        assert has(store, 1)
        assert store.present([address_of(2)]) == [True]
        assert server.ask("PTTL", key_of(1)) > 60_000
        assert server.ask("PTTL", key_of(2)) <= 60_000
        server.ask("PEXPIRE", key_of(1), 1)
        wait_for(lambda: store.present([address_of(1)]) == [False])
        assert not has(store, 1)


def test_keys_that_the_server_lost_are_absent(server: RedisServer) -> None:
    with store_on(server.address) as store:
        put(store, 1)
        server.ask("FLUSHALL")
        assert not has(store, 1)
        assert store.present([address_of(1)]) == [False]


def test_the_bytes_of_another_key_are_noticed(server: RedisServer) -> None:
    with store_on(server.address) as store, store_on(server.address, layout="other") as other:
        put(store, 1, 2)
        server.ask("COPY", key_of(2), key_of(1), "REPLACE")
        assert miss_of(store, 1) is CacheMiss.CHECKSUM
        put(other, 3)
        (copied,) = (
            key for key in server.ask("KEYS", "*") if LAYOUT_DIGEST.hex().encode() not in key
        )
        server.ask("COPY", copied, key_of(3))
        # The record in it is that of our layout: only its key is another's.
        assert miss_of(store, 3) is None


@pytest.mark.parametrize("position", [0, 5, 30, 60, BLOCK_BYTES // 2, -1])
def test_a_byte_that_changed_in_the_store_is_noticed(server: RedisServer, position: int) -> None:
    with store_on(server.address) as store:
        put(store, 1)
        record = bytearray(record_of(1))
        record[position] ^= 1
        server.ask("SET", key_of(1), bytes(record))
        assert miss_of(store, 1) in (CacheMiss.CHECKSUM, CacheMiss.LAYOUT)
        server.ask("SET", key_of(1), record_of(1)[:position])
        assert miss_of(store, 1) is CacheMiss.CHECKSUM


def test_a_server_that_is_not_there_yet_is_used_when_it_comes(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server:
        server.kill()
        with store_on(server.address) as store:
            assert failure(has, store, 1)
            server.start()
            wait_for(lambda: works(store, 1))


def test_a_server_that_comes_back_is_used_again(server: RedisServer) -> None:
    with store_on(server.address) as store:
        put(store, 1)
        server.kill()
        assert failure(has, store, 1)
        server.start()
        wait_for(lambda: works(store, 1))


def test_a_server_that_hangs_is_late_a_few_times_and_then_left_alone(server: RedisServer) -> None:
    with store_on(server.address, timeout_s=BRIEF_S) as store:
        settle(store, 1)
        server.suspend()
        failures = [failure(has, store, 1) for _ in range(50)]
        server.resume()
        assert all(failures)
        late = sum(isinstance(failed, StoreTimeout) for failed in failures)
        assert 3 <= late <= 5
        assert "left alone" in str(failures[-1])
        wait_for(lambda: works(store, 1))


def test_a_full_server_refuses_and_still_gives(tmp_path: Path) -> None:
    options = ServerOptions(lines=("--maxmemory", "4mb", "--maxmemory-policy", "noeviction"))
    with redis_server(tmp_path / "redis", options) as server, store_on(server.address) as store:
        put(store, 0)
        failures = [failure(put, store, number) for number in range(1, 200)]
        told = [str(failed) for failed in failures if failed]
        assert told
        assert all("is full: raise its maxmemory" in text for text in told)
        assert has(store, 0)


def test_a_server_with_a_policy_drops_what_is_old(tmp_path: Path) -> None:
    options = ServerOptions(lines=("--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"))
    with redis_server(tmp_path / "redis", options) as server, store_on(server.address) as store:
        put(store, *range(200))
        assert has(store, 199)
        assert sum(has(store, number) for number in range(200)) < 200


def test_no_more_connections_than_the_settings_have(server: RedisServer) -> None:
    with store_on(server.address, connections=2) as store, ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: put(store, number), range(200)))
        assert all(threads.map(lambda number: has(store, number), range(200)))
        clients = server.ask("CLIENT", "LIST").decode().splitlines()
        assert len(clients) <= 2 + 1  # the one that asks


def test_connections_that_were_cut_are_made_anew(server: RedisServer) -> None:
    with through_proxy(server, timeout_s=5) as (proxy, store):
        for number in range(5):
            assert works(store, number)
            proxy.cut()
            wait_for(partial(works, store, number))


def test_an_answer_that_comes_too_late_is_nobody_elses(server: RedisServer) -> None:
    with through_proxy(server, timeout_s=BRIEF_S) as (proxy, store):
        settle(store, 1, 2)
        proxy.hold()
        assert isinstance(failure(has, store, 1), StoreTimeout)
        proxy.restore()
        wait_for(lambda: works(store, 2))


def test_a_little_delay_is_no_failure(server: RedisServer) -> None:
    with through_proxy(server, timeout_s=5) as (proxy, store):
        proxy.delay(0.005)
        put(store, 1)
        assert has(store, 1)


def test_spoiled_answers_are_never_taken_for_a_record(server: RedisServer) -> None:
    """Whatever comes is right, or noticed: by the store or by the record's checksum."""
    dice = random.Random(5)  # noqa: S311 the same faults each time
    seen: Counter[str] = Counter()
    with through_proxy(server, timeout_s=BRIEF_S) as (proxy, store):
        settle(store, *range(8))
        for turn in range(300):
            if turn % 3 == 0:
                proxy.flip(dice.choice([97, 4_001, 30_011, 90_001]))
            elif turn % 3 == 1:
                proxy.truncate(dice.randrange(2 * BLOCK_BYTES))
            else:
                proxy.restore()
                wait_for(partial(works, store, turn % 8))
            seen[_outcome(store, turn % 8)] += 1
    assert seen["right"] > 0
    assert seen["failed"] > 0
    assert seen["checksum"] > 0


def _outcome(store: Store, number: int) -> str:
    try:
        record = store.get(address_of(number))
    except StoreFailed:
        return "failed"
    if record is None:
        return "absent"
    try:
        payload = opened(record, address_of(number), LAYOUT_DIGEST)
    except BadRecord:
        return "checksum"
    assert payload == block_of(number)
    return "right"
