"""A record's share on one node, with a checksum of its own."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from services.engine.kv.record import Payload, checksum

_MAGIC = b"TWKF"
_VERSION = 1
_HEADER = struct.Struct("<4sBBBBBQ16s")
"""magic, version, code, index, data fragments, parity fragments, bytes of the record, stripe"""
_CHECKSUM = struct.Struct("<16s")
HEADER_BYTES = _HEADER.size + _CHECKSUM.size


class BadFragment(Exception):
    """Bytes that are no fragment of the wanted record."""


@dataclass(frozen=True, slots=True)
class Stripe:
    """What all fragments of one write have in common, so that those of two are never mixed.

    Args:
        code: number of the erasure code.
        data: fragments that are needed.
        parity: fragments that may be lost.
        size: bytes of the record.
        digest: of address and record. Two engines that write the same bytes write one stripe.
    """

    code: int
    data: int
    parity: int
    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Fragment:
    stripe: Stripe
    index: int
    payload: bytes


def sealed_fragment(fragment: Fragment, address: bytes, layout: bytes) -> bytes:
    """A header of HEADER_BYTES and the payload. Args: layout: its digest."""
    header = _packed(fragment)
    digest = checksum(address + header, layout, fragment.payload)
    return header + digest + fragment.payload


def opened_fragment(record: Payload, address: bytes, layout: bytes) -> Fragment:
    """Raises BadFragment unless it is whole, and a fragment of the record at `address`."""
    view = memoryview(record).cast("B")
    if len(view) < HEADER_BYTES:
        raise BadFragment("too short")
    header, payload = view[: _HEADER.size], view[HEADER_BYTES:]
    magic, version, code, index, data, parity, size, digest = _HEADER.unpack(header)
    if magic != _MAGIC or version != _VERSION:
        raise BadFragment("of another format")
    if checksum(address + bytes(header), layout, payload) != view[_HEADER.size : HEADER_BYTES]:
        raise BadFragment("checksum")
    # A copy: the code ends the process when it is given a view.
    return Fragment(Stripe(code, data, parity, size, digest), index, bytes(payload))


def _packed(fragment: Fragment) -> bytes:
    stripe = fragment.stripe
    shape = (stripe.code, fragment.index, stripe.data, stripe.parity, stripe.size)
    return _HEADER.pack(_MAGIC, _VERSION, *shape, stripe.digest)
