"""One connection to a node: whose answer is whose, and what becomes of it after an error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from services.engine.kv.stores.node_address import node_address
from services.engine.kv.stores.redis_access import RedisAccess
from services.engine.kv.stores.redis_connection import Command, RedisConnection
from tests.engine.kv.stores.answering import answering
from tests.engine.kv.stores.bed import BRIEF_S, TIMEOUT_S
from tests.redis_server import RedisServer, redis_server

ACCESS = RedisAccess(timeout_s=TIMEOUT_S, connections=1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


def connection_to(address: str) -> RedisConnection:
    return RedisConnection(node_address(address), ACCESS)


def soon() -> float:
    return time.monotonic() + TIMEOUT_S


def test_answers_come_in_the_order_of_the_commands(server: RedisServer) -> None:
    connection = connection_to(server.address)
    large = bytes(2**20)
    commands: list[Command] = [
        ("SET", "a", memoryview(large)),
        ("SET", b"b", 7),
        ("GET", "b"),
        ("GET", "a"),
    ]
    assert connection.ask(commands, soon()) == [b"OK", b"OK", b"7", large]
    connection.close()


def test_an_error_among_answers_is_one_of_them(server: RedisServer) -> None:
    connection = connection_to(server.address)
    first, error, last = connection.ask([("PING",), ("LPUSH",), ("PING",)], soon())
    assert first == last == b"PONG"
    assert isinstance(error, redis.ResponseError)
    connection.close()


def test_it_connects_anew_when_the_node_has_closed_it(server: RedisServer) -> None:
    connection = connection_to(server.address)
    connection.ask([("PING",)], soon())
    server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert connection.ask([("PING",)], soon()) == [b"PONG"]
    connection.close()


def test_an_answer_after_the_time_limit_is_not_taken_for_the_next(server: RedisServer) -> None:
    connection = connection_to(server.address)
    connection.ask([("SET", "key", "value")], soon())
    server.suspend()
    with pytest.raises(redis.TimeoutError):
        connection.ask([("GET", "key")], time.monotonic() + BRIEF_S)
    server.resume()
    assert connection.ask([("PING",)], soon()) == [b"PONG"]
    connection.close()


def test_a_node_that_says_more_than_it_was_asked_is_not_believed() -> None:
    with answering(b"$1\r\na\r\n$1\r\nb\r\n") as node:
        connection = connection_to(node.address)
        for times in (1, 2):
            with pytest.raises(redis.ConnectionError, match="more than it was asked"):
                connection.ask([("GET", "key")], soon())
            assert node.accepted == times
        connection.close()


def test_no_time_left_is_no_time_spent() -> None:
    with answering(b"+OK\r\n") as node:
        connection = connection_to(node.address)
        with pytest.raises(redis.TimeoutError):
            connection.ask([("PING",)], time.monotonic())
        assert node.accepted == 0
