"""The servers that tests of stores are made with."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.certificates import Authority
from tests.redis_server import (
    RedisServer,
    ServerOptions,
    redis_cluster,
    redis_server,
    redis_servers,
    wait_for,
)

PASSWORD = "of their operator"  # noqa: S105 nobody else knows it


def test_a_server_starts_again_empty_at_its_address(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        address = server.address
        server.ask("SET", "key", b"\0value")
        assert server.ask("GET", "key") == b"\0value"
        server.kill()
        with pytest.raises(redis.ConnectionError):
            server.ask("PING")
        server.start()
        assert server.address == address
        assert server.ask("GET", "key") is None


def test_a_suspended_server_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        server.suspend()
        server.resume()
        assert server.ask("PING") == b"PONG"


def test_servers_know_nothing_of_each_other(tmp_path: Path) -> None:
    with redis_servers(tmp_path, 2, ServerOptions(password=PASSWORD)) as (first, second):
        first.ask("SET", "key", "value")
        assert second.ask("GET", "key") is None


def test_a_server_with_tls_asks_for_a_certificate(tmp_path: Path) -> None:
    identity = Authority(tmp_path).issue("server")
    with redis_server(tmp_path / "redis", ServerOptions(tls=identity)) as server:
        assert server.ask("PING") == b"PONG"


def test_a_cluster_serves_what_it_has_when_a_node_is_dead(tmp_path: Path) -> None:
    with redis_cluster(tmp_path) as (first, second, third):
        keys = [f"key{index}" for index in range(64)]
        kept = [key for key in keys if _stored(first, key) or _stored(second, key)]
        assert 0 < len(kept) < len(keys)
        third.kill()
        wait_for(lambda: b"fail" in first.ask("CLUSTER", "NODES"))
        assert all(_stored(first, key) or _stored(second, key) for key in kept)


def _stored(node: RedisServer, key: str) -> bool:
    try:
        node.ask("SET", key, "value")
    except redis.exceptions.MovedError:
        return False
    return True
