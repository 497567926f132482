"""Records packed with zstd on their way to a store."""

from __future__ import annotations

from collections.abc import Sequence
from threading import local

import zstandard

from services.engine.kv.record import Payload
from services.engine.kv.store import Store

LEVEL = 1
"""The fastest of the usual levels: keys and values are nearly noise, more effort gains little."""


class CompressedStore:
    """`Store` that packs what `store` keeps.

    Bytes that cannot be unpacked come back empty: whoever reads finds that they are no record.

    Args:
        largest: bytes of a record that are unpacked at most; a damaged length asks for no more.
    """

    def __init__(self, store: Store, largest: int) -> None:
        self._store = store
        self._largest = largest
        self._own = local()

    def get(self, address: bytes) -> Payload | None:
        packed = self._store.get(address)
        if packed is None:
            return None
        try:
            if zstandard.frame_content_size(packed) > self._largest:
                return b""
            return self._unpacker().decompress(packed, max_output_size=self._largest)
        except (zstandard.ZstdError, MemoryError):
            return b""

    def put(self, address: bytes, record: Payload) -> None:
        self._store.put(address, self._packer().compress(record))

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        return self._store.present(addresses)

    def flush(self) -> int:
        return self._store.flush()

    def close(self) -> None:
        self._store.close()

    def _packer(self) -> zstandard.ZstdCompressor:
        """One for each thread: they cannot be shared."""
        if not hasattr(self._own, "packer"):
            self._own.packer = zstandard.ZstdCompressor(level=LEVEL)
        packer: zstandard.ZstdCompressor = self._own.packer
        return packer

    def _unpacker(self) -> zstandard.ZstdDecompressor:
        if not hasattr(self._own, "unpacker"):
            self._own.unpacker = zstandard.ZstdDecompressor()
        unpacker: zstandard.ZstdDecompressor = self._own.unpacker
        return unpacker
