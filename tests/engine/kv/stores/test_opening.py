"""The store that the settings ask for, or the key that forbids it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    Compression,
    DistributedSettings,
    EmbeddedSettings,
    Spread,
)
from services.engine.kv.stores.compressed import CompressedStore
from services.engine.kv.stores.erasure_store import ErasureStore
from services.engine.kv.stores.lmdb_store import LmdbStore
from services.engine.kv.stores.opening import open_store
from services.engine.kv.stores.redis_store import RedisStore
from services.shared.byte_size import ByteSize
from services.shared.config import BadConfig
from tests.engine.kv.stores.bed import BLOCK_BYTES, LAYOUT, failure, has, put
from tests.redis_server import free_port, redis_server

ROOT = Path(__file__).parents[4]


def distributed(*nodes: str, **settings: Any) -> CacheSettings:
    return CacheSettings(
        type=CacheType.DISTRIBUTED, distributed=DistributedSettings(nodes=nodes, **settings)
    )


def embedded(path: Path, max_bytes: int = 2**22, **settings: Any) -> CacheSettings:
    file = EmbeddedSettings(path=path, max_bytes=ByteSize(max_bytes))
    return CacheSettings(type=CacheType.EMBEDDED, embedded=file, **settings)


def refusal(settings: CacheSettings) -> str:
    with pytest.raises(BadConfig) as raised:
        open_store(settings, LAYOUT, BLOCK_BYTES)
    return str(raised.value)


def test_no_cache_has_no_store() -> None:
    assert open_store(CacheSettings(), LAYOUT, BLOCK_BYTES) is None


def test_each_type_and_spread_has_its_store(tmp_path: Path) -> None:
    six = [f"127.0.0.1:{port}" for port in range(7000, 7006)]
    for settings, kind in (
        (embedded(tmp_path), LmdbStore),
        (embedded(tmp_path, compression=Compression.ZSTD), CompressedStore),
        (distributed("cache:6379"), RedisStore),
        (distributed(*six, spread=Spread.CLUSTER), RedisStore),
        (distributed(*six, spread=Spread.ERASURE), ErasureStore),
    ):
        store = open_store(settings, LAYOUT, BLOCK_BYTES)
        assert type(store) is kind
        store.close()


def test_a_compressed_block_is_as_large_as_the_engine_says(tmp_path: Path) -> None:
    store = open_store(embedded(tmp_path, compression=Compression.ZSTD), LAYOUT, BLOCK_BYTES)
    assert store is not None
    put(store, 1)
    assert has(store, 1)
    store.close()


def test_a_store_that_is_down_is_no_bad_setting() -> None:
    store = open_store(distributed(f"127.0.0.1:{free_port()}"), LAYOUT, BLOCK_BYTES)
    assert store is not None
    assert failure(has, store, 1)
    store.close()


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        (("cache",), "cache.distributed.nodes[0] must be host:port, got 'cache'"),
        (("cache:1", "cache:x"), "cache.distributed.nodes[1] must be host:port, got 'cache:x'"),
        (("cache:1", "cache:1"), "cache.distributed.nodes[1] cache:1 is there twice"),
        (("cache:99999",), "cache.distributed.nodes[0] must have a port between 1 and 65535"),
    ],
)
def test_a_malformed_node_is_named(nodes: tuple[str, ...], told: str) -> None:
    assert told in refusal(distributed(*nodes, spread=Spread.CLUSTER))


def test_a_password_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    settings = distributed("cache:1", password_file=tmp_path / "gone")
    assert refusal(settings).startswith("cache.distributed.password_file ")


def test_a_file_without_room_for_blocks_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"cache.embedded.max_bytes must be >= \d+ for records of"):
        open_store(embedded(tmp_path, 2**20), LAYOUT, 2**20)


def test_a_folder_that_is_not_ours_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = refusal(embedded(tmp_path / "file" / "kv"))
    assert told.startswith("cache.embedded.path ")
    assert "Not a directory" in told


MISSING = """
import sys
from pathlib import Path

for name in ("lmdb", "pyeclib", "redis", "zstandard"):
    sys.modules[name] = None  # as if it were not installed

from services.engine.kv.cache_settings import CacheSettings, CacheType, Compression
from services.engine.kv.cache_settings import DistributedSettings, Spread
from services.engine.kv.stores.opening import open_store
from services.shared.config import BadConfig

assert open_store(CacheSettings(), "layout", 64) is None
nodes = tuple(f"cache:{port}" for port in range(1, 7))
spread = DistributedSettings(nodes=nodes, spread=Spread.ERASURE)
for settings in (
    CacheSettings(type=CacheType.EMBEDDED),
    CacheSettings(type=CacheType.EMBEDDED, compression=Compression.ZSTD),
    CacheSettings(type=CacheType.DISTRIBUTED, distributed=DistributedSettings(nodes=nodes[:1])),
    CacheSettings(type=CacheType.DISTRIBUTED, distributed=spread),
):
    try:
        open_store(settings, "layout", 64)
    except BadConfig as error:
        print(error)
"""


def test_a_missing_package_names_the_extra(tmp_path: Path) -> None:
    """And an engine without a cache needs none of them."""
    told = subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", MISSING],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines() == [
        f"{key} needs the package {package}: install tokenway[cache]"
        for key, package in (
            ("cache.type", "lmdb"),
            ("cache.compression", "zstandard"),
            ("cache.type", "redis"),
            ("cache.distributed.spread", "redis"),
        )
    ]


def test_an_engine_reads_what_another_has_put(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server:
        for turn in range(2):
            store = open_store(distributed(server.address), LAYOUT, BLOCK_BYTES)
            assert store is not None
            assert has(store, 1) is bool(turn)
            put(store, 1)
            store.close()
