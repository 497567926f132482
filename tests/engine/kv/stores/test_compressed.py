"""Records packed on their way to a store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import zstandard

from services.engine.kv.store import Store
from services.engine.kv.stores.compressed import CompressedStore
from services.engine.kv.stores.lmdb_store import LmdbStore
from tests.engine.kv.stores.bed import LAYOUT, address_of, has, put, record_of

LARGEST = len(record_of(1))


@pytest.fixture
def inner(tmp_path: Path) -> Store:
    return LmdbStore(tmp_path, 2**22, LAYOUT, ttl_s=600)


def test_a_record_is_smaller_inside_and_comes_back(inner: Store) -> None:
    store = CompressedStore(inner, LARGEST)
    assert not has(store, 1)
    for kind in (bytes, bytearray, memoryview):
        store.put(address_of(1), kind(record_of(1)))
        assert has(store, 1)
    packed = inner.get(address_of(1))
    assert packed is not None
    assert len(packed) < LARGEST / 10
    assert store.present([address_of(1), address_of(2)]) == [True, False]
    assert store.flush() == 1
    store.close()


def test_noise_comes_back_too(inner: Store) -> None:
    store = CompressedStore(inner, LARGEST)
    noise = os.urandom(LARGEST)
    store.put(address_of(1), noise)
    assert store.get(address_of(1)) == noise
    store.close()


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no frame",
        record_of(1),
        zstandard.compress(record_of(1))[:-9],
        zstandard.compress(bytes(2**28)),
        zstandard.ZstdCompressor(write_content_size=False).compress(bytes(2**24)),
        b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8,
    ],
)
def test_what_cannot_be_unpacked_is_no_record(inner: Store, packed: bytes) -> None:
    store = CompressedStore(inner, LARGEST)
    inner.put(address_of(1), packed)
    assert store.get(address_of(1)) == b""
    put(store, 1)
    assert has(store, 1)
    store.close()
