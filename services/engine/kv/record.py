"""A block as it is kept outside of engines: who it is, what it holds, and a checksum over both."""

from __future__ import annotations

import struct
from hashlib import blake2b

import xxhash

from services.shared.stream.events import CacheMiss

Payload = bytes | bytearray | memoryview

CHECKSUM_BYTES = 16

_MAGIC = b"TWKV"
_VERSION = 1
_HEADER = struct.Struct("<4sI8s16sQ16s")  # magic, version, layout, address, length, checksum
HEADER_BYTES = _HEADER.size


class BadRecord(Exception):
    """Bytes that are not the wanted block; `miss` tells how one notices."""

    def __init__(self, miss: CacheMiss) -> None:
        super().__init__(miss.name.lower())
        self.miss = miss


def layout_digest(layout_id: str) -> bytes:
    """Eight bytes that stand for a KV layout in records and namespaces."""
    return blake2b(layout_id.encode(), digest_size=8).digest()


def checksum(address: bytes, layout: bytes, payload: Payload) -> bytes:
    """XXH3-128 of address, layout digest and bytes: another block's bytes do not fit either."""
    digest = xxhash.xxh3_128(address + layout)
    digest.update(payload)
    return digest.digest()


def sealed(address: bytes, layout: bytes, payload: Payload) -> bytes:
    """The record of a block: a header of HEADER_BYTES and the payload.

    Args: layout: its digest.
    """
    record = memoryview(bytearray(HEADER_BYTES + memoryview(payload).nbytes))
    record[HEADER_BYTES:] = memoryview(payload).cast("B")
    seal(record, address, layout)
    return bytes(record)


def seal(record: memoryview, address: bytes, layout: bytes) -> None:
    """Makes a record of HEADER_BYTES of room and the payload after it, without a copy."""
    payload = record[HEADER_BYTES:]
    digest = checksum(address, layout, payload)
    _HEADER.pack_into(record, 0, _MAGIC, _VERSION, layout, address, len(payload), digest)


def opened(record: Payload, address: bytes, layout: bytes) -> memoryview:
    """The payload of the block at `address`, without a copy.

    Raises:
        BadRecord: LAYOUT where it is a whole record of another layout, CHECKSUM for all else.
    """
    view = memoryview(record).cast("B")
    if len(view) < HEADER_BYTES:
        raise BadRecord(CacheMiss.CHECKSUM)
    magic, version, of_layout, of_address, size, digest = _HEADER.unpack_from(view)
    payload = view[HEADER_BYTES:]
    if magic != _MAGIC or len(payload) != size:
        raise BadRecord(CacheMiss.CHECKSUM)
    if checksum(of_address, of_layout, payload) != digest:
        raise BadRecord(CacheMiss.CHECKSUM)
    if version != _VERSION or of_layout != layout:
        raise BadRecord(CacheMiss.LAYOUT)
    if of_address != address:
        raise BadRecord(CacheMiss.CHECKSUM)
    return payload
