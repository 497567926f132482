"""Rates of the service cache's stores over a copy in memory, in the same run.

Records of one block of the default model, each written once and read a few times; the best of all
counts, since neighbours on the machine only take. Servers are real, on loopback.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.ratio import Ratio
from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    Compression,
    DistributedSettings,
    EmbeddedSettings,
    Spread,
    TlsSettings,
)
from services.engine.kv.record import layout_digest, opened, sealed
from services.engine.kv.store import Store
from services.engine.kv.stores.opening import open_store
from services.shared.byte_size import ByteSize
from tests.certificates import Authority
from tests.redis_server import ServerOptions, redis_cluster, redis_server, redis_servers

BLOCK_BYTES = 737_280
LAYOUT = "bench"
RECORDS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """GB/s, the best of all and the median."""

    best: float
    median: float


def rates_of(act: Callable[[int], object], rounds: int) -> Rates:
    times = []
    for turn in range(rounds * RECORDS):
        began = time.perf_counter()
        act(turn % RECORDS)
        times.append(time.perf_counter() - began)
    times.sort()
    size = BLOCK_BYTES / 1e9
    return Rates(best=size / times[0], median=size / times[len(times) // 2])


def distributed(nodes: Sequence[str], **settings: Any) -> CacheSettings:
    store = DistributedSettings(nodes=tuple(nodes), timeout_s=10, **settings)
    return CacheSettings(type=CacheType.DISTRIBUTED, distributed=store)


def embedded(folder: Path, compression: Compression = Compression.NONE) -> CacheSettings:
    file = EmbeddedSettings(path=folder, max_bytes=ByteSize(64 * BLOCK_BYTES))
    return CacheSettings(type=CacheType.EMBEDDED, embedded=file, compression=compression)


@contextmanager
def settings_of_each(folder: Path) -> Iterator[dict[str, CacheSettings]]:
    identity = Authority(folder).issue("store")
    files = {name: getattr(identity, name) for name in ("ca_file", "cert_file", "key_file")}
    with (
        redis_server(folder / "one") as one,
        redis_server(folder / "tls", ServerOptions(tls=identity)) as safe,
        redis_cluster(folder / "cluster") as cluster,
        redis_servers(folder / "six", 6) as six,
    ):
        yield {
            "file": embedded(folder / "file"),
            "file_zstd": embedded(folder / "zstd", compression=Compression.ZSTD),
            "redis": distributed([one.address]),
            "redis_tls": distributed([safe.address], tls=TlsSettings(enabled=True, **files)),
            "cluster": distributed([cluster[0].address], spread=Spread.CLUSTER),
            "erasure": distributed([node.address for node in six], spread=Spread.ERASURE),
        }


def measured(name: str, store: Store, copy: Rates, rounds: int) -> list[Ratio]:
    """Writes and reads records, and looks that each is the right one."""
    layout = layout_digest(LAYOUT)
    addresses = [os.urandom(16) for _ in range(RECORDS)]
    payloads = [os.urandom(BLOCK_BYTES) for _ in range(RECORDS)]
    records = [sealed(*them) for them in zip(addresses, [layout] * RECORDS, payloads, strict=True)]
    ratios = []
    for what, act in (
        ("put", lambda index: store.put(addresses[index], records[index])),
        ("get", lambda index: store.get(addresses[index])),
    ):
        rates = rates_of(act, rounds)
        print(f"{name} {what}: {rates.best:.2f} GB/s, median {rates.median:.2f}")
        ratios.append(Ratio(name=f"{name}_{what}_to_copy", value=rates.best / copy.best))
    for address, payload in zip(addresses, payloads, strict=True):
        assert opened(store.get(address) or b"", address, layout) == payload  # noqa: S101
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    block = os.urandom(BLOCK_BYTES)
    copy = rates_of(lambda _: bytearray(block), options.rounds)
    print(f"copy: {copy.best:.2f} GB/s, median {copy.median:.2f}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder, settings_of_each(Path(folder)) as each:
        for name, settings in each.items():
            store = open_store(settings, LAYOUT, BLOCK_BYTES)
            assert store is not None  # noqa: S101
            ratios += measured(name, store, copy, options.rounds)
            store.close()
    for ratio in ratios:
        print(ratio)


if __name__ == "__main__":
    main()
