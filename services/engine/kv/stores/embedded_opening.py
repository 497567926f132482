"""The file that a machine's engines share, as the settings have it."""

from __future__ import annotations

import os

from services.engine.kv.cache_settings import CacheSettings, EmbeddedSettings
from services.engine.kv.store import Store
from services.engine.kv.stores.lmdb_store import LmdbStore, check_room
from services.shared.config import BadConfig


def open_embedded(settings: CacheSettings, layout_id: str, record_bytes: int) -> Store:
    """Raises BadConfig where the file has no room for some records, or is not ours to write."""
    embedded = settings.embedded
    try:
        check_room(embedded.max_bytes, record_bytes)
    except ValueError as error:
        raise BadConfig(f"cache.embedded.max_bytes {error}") from None
    _check_folder(embedded)
    return LmdbStore(embedded.path, embedded.max_bytes, layout_id, settings.ttl_s)


def _check_folder(embedded: EmbeddedSettings) -> None:
    path = embedded.path
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"cache.embedded.path {path} cannot be made: {error.strerror}") from error
    for needed in (path, *path.glob("*.mdb"), *path.glob("*.lock")):
        if not os.access(needed, os.R_OK | os.W_OK):
            raise BadConfig(f"cache.embedded.path {path}: {needed} must be ours to read and write")
