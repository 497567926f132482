"""Which records of the file were used when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from services.engine.kv.stores.used_order import UsedOrder


@pytest.fixture
def env(tmp_path: Path) -> Iterator[lmdb.Environment]:
    with lmdb.open(str(tmp_path), max_dbs=2) as opened:
        yield opened


@pytest.fixture
def order(env: lmdb.Environment) -> UsedOrder:
    return UsedOrder(env.open_db(b"used"), env.open_db(b"order"))


def test_what_was_used_longest_ago_is_the_oldest(env: lmdb.Environment, order: UsedOrder) -> None:
    with env.begin(write=True) as txn:
        assert order.oldest(txn) is None
        for key, now in ((b"b", 200), (b"a", 70_000), (b"c", 3)):
            order.note(txn, key, now)
        assert order.oldest(txn) == (3, b"c")
        order.note(txn, b"c", 300)
        assert order.oldest(txn) == (200, b"b")
        order.forget(txn, b"b")
        assert order.oldest(txn) == (300, b"c")
        assert order.used_at(txn, b"b") is None
        assert order.used_at(txn, b"a") == 70_000


def test_each_key_is_in_the_order_once(env: lmdb.Environment, order: UsedOrder) -> None:
    with env.begin(write=True) as txn:
        for now in range(5):
            order.note(txn, b"key", now)
        assert txn.stat(order.order)["entries"] == txn.stat(order.used)["entries"] == 1
        order.forget(txn, b"key")
        order.forget(txn, b"key")
        assert txn.stat(order.order)["entries"] == txn.stat(order.used)["entries"] == 0


def test_keys_are_found_by_what_they_begin_with(env: lmdb.Environment, order: UsedOrder) -> None:
    with env.begin(write=True) as txn:
        for key in (b"a1", b"b1", b"b2", b"c1"):
            order.note(txn, key, 1)
        assert list(order.keys(txn, b"b")) == [b"b1", b"b2"]
        assert list(order.keys(txn, b"d")) == []
