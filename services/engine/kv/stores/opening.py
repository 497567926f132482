"""The store that the settings ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from services.engine.kv.cache_settings import CacheSettings, CacheType, Compression, Spread
from services.engine.kv.record import HEADER_BYTES
from services.engine.kv.store import Store
from services.shared.config import BadConfig

# Each store's packages are imported with it: an engine without a cache does without them.
# ruff: noqa: PLC0415


def open_store(settings: CacheSettings, layout_id: str, block_bytes: int) -> Store | None:
    """The store for blocks of one layout; None where `type` is NONE.

    A store that is down is no error: it is used when it comes.

    Args:
        settings: of the cache.
        layout_id: of the engine's KV.
        block_bytes: of one block.

    Raises:
        BadConfig: naming the key; or the extra `tokenway[cache]` where a package is missing.
    """
    record_bytes = block_bytes + HEADER_BYTES
    if settings.type is CacheType.NONE:
        return None
    if settings.compression is Compression.NONE:
        return _opened(settings, layout_id, record_bytes)
    with _packages("cache.compression"):
        from services.engine.kv.stores.compressed import CompressedStore
    return CompressedStore(_opened(settings, layout_id, record_bytes), largest=record_bytes)


def _opened(settings: CacheSettings, layout_id: str, record_bytes: int) -> Store:
    if settings.type is CacheType.EMBEDDED:
        with _packages("cache.type"):
            from services.engine.kv.stores.embedded_opening import open_embedded
        return open_embedded(settings, layout_id, record_bytes)
    if settings.distributed.spread is Spread.ERASURE:
        with _packages("cache.distributed.spread"):
            from services.engine.kv.stores.erasure_opening import open_erasure
        return open_erasure(settings, layout_id)
    with _packages("cache.type"):
        from services.engine.kv.stores.distributed_opening import open_distributed
    return open_distributed(settings, layout_id)


@contextmanager
def _packages(key: str) -> Iterator[None]:
    """For imports that only one store needs."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise BadConfig(f"{key} needs the package {package}: install tokenway[cache]") from error
