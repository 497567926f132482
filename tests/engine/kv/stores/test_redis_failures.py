"""What a node's errors mean, in words that tell an operator what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.engine.kv.store import StoreTimeout
from tests.certificates import Authority
from tests.engine.kv.stores.answering import answering
from tests.engine.kv.stores.bed import (
    BRIEF_S,
    LAYOUT_DIGEST,
    address_of,
    failure,
    has,
    put,
    store_on,
)
from tests.redis_server import ServerOptions, free_port, redis_cluster, redis_server

SECRET = "of the store"  # noqa: S105 nobody else knows it


def told_by(answer: bytes) -> str:
    with answering(answer) as node, store_on(node.address) as store:
        failed = failure(lambda: store.get(address_of(1)))
        return str(failed).replace(node.address, "the node")


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ("LOADING Redis is loading the dataset in memory", "loads its data from disk"),
        ("MISCONF Redis is configured to save RDB snapshots", "cannot save to its disk"),
        ("NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
        ("CLUSTERDOWN The cluster is down", "a cluster that is down"),
        ("MASTERDOWN Link with MASTER is down", "without its primary"),
        ("TRYAGAIN Multiple keys request during rehashing", "is moving slots"),
        ("ERR max number of clients reached", "raise its maxclients"),
        ("DENIED Redis is running in protected mode because", "answers loopback only"),
        ("ERR unknown command 'GETEX', with args beginning with:", "must be Redis 6.2"),
        ("ERR no idea \x07" + "x" * 999, "gives no answer that can be used: no idea ?xxx"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "raise its maxmemory"),
    ],
)
def test_an_error_is_told_with_advice(answer: str, advice: str) -> None:
    told = told_by(f"-{answer}\r\n".encode())
    assert told.startswith("the node")
    assert advice in told
    assert len(told) < 300


@pytest.mark.parametrize(
    "answer",
    [
        *(
            b":1\r\n",
            b"*1\r\n$1\r\nx\r\n",
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            b"\0" * 99,
        ),
        *(b"$-7\r\nxxx\r\n", b"-\xff\xfe\r\n", b"-MOVED\r\n", b"-ASK 1 x\r\n", b"*99999999999\r\n"),
    ],
)
def test_what_is_no_answer_is_a_failure(answer: bytes) -> None:
    assert told_by(answer) != "None"


def test_a_node_that_sends_a_little_at_a_time_is_late_all_the_same() -> None:
    answer = b"$1000\r\n" + bytes(1000) + b"\r\n"
    with (
        answering(answer, pace_s=BRIEF_S / 20) as node,
        store_on(node.address, timeout_s=BRIEF_S) as store,
    ):
        assert isinstance(failure(lambda: store.get(address_of(1))), StoreTimeout)
        assert 0 < node.sent < len(answer)


def test_a_length_that_memory_has_no_room_for_is_a_failure() -> None:
    with (
        answering(b"$400000000000\r\nxxx") as node,
        store_on(node.address, timeout_s=BRIEF_S) as store,
    ):
        assert failure(lambda: store.get(address_of(1)))


def test_nobody_listens() -> None:
    with store_on(f"127.0.0.1:{free_port()}") as store:
        assert "cannot be reached" in str(failure(lambda: store.get(address_of(1))))


def test_a_password_is_wrong_or_missing_and_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "password"
    with redis_server(tmp_path / "redis", ServerOptions(password=SECRET)) as server:
        with store_on(server.address) as store:
            assert "set cache.distributed.password_file" in str(failure(put, store, 1))
        file.write_text("wrong " + SECRET)
        with store_on(server.address, password_file=file) as store:
            told = str(failure(put, store, 1))
            assert "refuses our password" in told
            assert SECRET not in told
        file.write_text(SECRET)
        with store_on(server.address, password_file=file) as store:
            put(store, 1)
            assert has(store, 1)


def test_a_user_has_what_the_advice_allows(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(SECRET)
    with redis_server(tmp_path / "redis") as server:
        commands = ("+getex", "+set", "+exists", "+scan", "+unlink", "+ping", "+cluster|slots")
        server.ask("ACL", "SETUSER", "engine", "on", f">{SECRET}", "~tokenway:*", *commands)
        with store_on(server.address, username="engine", password_file=file) as store:
            put(store, 1)
            assert store.present([address_of(1)]) == [True]
            assert has(store, 1)
            assert store.flush() == 1
            server.ask("ACL", "SETUSER", "engine", "-set")
            assert "forbids our user" in str(failure(put, store, 1))


def test_a_replica_takes_no_writes(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server, store_on(server.address) as store:
        put(store, 1)
        server.ask("REPLICAOF", "127.0.0.1", free_port())
        assert "name its primary" in str(failure(put, store, 2))


def test_a_node_of_a_cluster_is_not_the_whole_store(tmp_path: Path) -> None:
    with redis_cluster(tmp_path) as (first, *_), store_on(first.address) as store:
        told = {str(failure(put, store, number)) for number in range(32)}
        told.discard("None")
        assert told
        assert all("set cache.distributed.spread to cluster" in text for text in told)


def test_a_value_is_larger_than_the_node_takes(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server, store_on(server.address) as store:
        server.ask("CONFIG", "SET", "proto-max-bulk-len", 2**20)
        told = str(failure(lambda: store.put(address_of(1), bytes(2**22))))
        assert "proto-max-bulk-len" in told
        put(store, 2)
        assert has(store, 2)


def test_another_kind_of_value_is_a_failure(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server, store_on(server.address) as store:
        key = b"tokenway:%s:%s" % (LAYOUT_DIGEST.hex().encode(), address_of(1).hex().encode())
        server.ask("LPUSH", key, "one")
        assert "gives no answer that can be used" in str(failure(has, store, 1))


def test_tls_is_spoken_with_who_is_known_alone(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    server_id, client_id = ours.issue("server"), ours.issue("client")
    stranger = Authority(tmp_path, "others").issue("stranger")
    known = {"enabled": True, "ca_file": client_id.ca_file}
    pair = {"cert_file": client_id.cert_file, "key_file": client_id.key_file}
    with redis_server(tmp_path / "redis", ServerOptions(tls=server_id)) as server:
        with store_on(server.address, tls=known | pair) as store:
            put(store, 1)
            assert has(store, 1)
        for tls in (known, known | pair | {"ca_file": stranger.ca_file}, {}):
            with store_on(server.address, tls=tls) as store:
                assert failure(put, store, 2)
