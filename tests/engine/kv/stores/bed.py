"""What tests of stores share: records that can be checked, and stores on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import Any

from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    DistributedSettings,
    Spread,
    TlsSettings,
)
from services.engine.kv.record import layout_digest, opened, sealed
from services.engine.kv.store import Store, StoreFailed
from services.engine.kv.stores.opening import open_store
from tests.redis_server import wait_for

LAYOUT = "16x30x3x64 fp32"
LAYOUT_DIGEST = layout_digest(LAYOUT)
BLOCK_BYTES = 40_000

TIMEOUT_S = 5.0
"""Of tests in which nothing is late: a machine with much to do is no failure."""

BRIEF_S = 0.4
"""Of tests in which a node is silent."""


def address_of(number: int) -> bytes:
    return blake2b(number.to_bytes(8, "little"), digest_size=16).digest()


def block_of(number: int, size: int = BLOCK_BYTES) -> bytes:
    """Bytes that no other number has."""
    return blake2b(number.to_bytes(8, "little")).digest() * (size // 64)


def record_of(number: int, size: int = BLOCK_BYTES) -> bytes:
    return sealed(address_of(number), LAYOUT_DIGEST, block_of(number, size))


def put(store: Store, *numbers: int) -> None:
    for number in numbers:
        store.put(address_of(number), record_of(number))


def has(store: Store, number: int) -> bool:
    """Whether the store gives the record; it must be the right one then."""
    record = store.get(address_of(number))
    if record is None:
        return False
    assert opened(record, address_of(number), LAYOUT_DIGEST) == block_of(number)
    return True


def works(store: Store, number: int) -> bool:
    """Whether a record can be written and read."""
    try:
        put(store, number)
        return has(store, number)
    except StoreFailed:
        return False


def settle(store: Store, *numbers: int) -> None:
    """Puts them, however long a machine with much to do takes for one."""
    for number in numbers:
        wait_for(partial(works, store, number))


def failure(act: Callable[..., object], *args: object) -> StoreFailed | None:
    """How `act` fails, if it does."""
    try:
        act(*args)
    except StoreFailed as failed:
        return failed
    return None


@contextmanager
def store_on(
    *nodes: str, spread: Spread = Spread.SINGLE, layout: str = LAYOUT, **settings: Any
) -> Iterator[Store]:
    """A store on servers; `settings` are those of `DistributedSettings`, and `ttl_s`."""
    ttl_s = settings.pop("ttl_s", 600.0)
    settings["tls"] = TlsSettings(**settings.get("tls", {}))
    distributed = DistributedSettings(
        nodes=nodes, spread=spread, **{"timeout_s": TIMEOUT_S, **settings}
    )
    cache = CacheSettings(type=CacheType.DISTRIBUTED, distributed=distributed, ttl_s=ttl_s)
    store = open_store(cache, layout, BLOCK_BYTES)
    assert store is not None
    try:
        yield store
    finally:
        store.close()
