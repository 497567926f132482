"""Loans of blocks between their messages and the domain's values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv.copies import LentBlock
from services.engine.kv.lending import Found
from services.engine.kv.loan_requests import Chain, Fetch, Lookup, Release

MESSAGE_BYTES = 2**20
"""Bytes of blocks in one message."""


def lookup_from(request: pb.LookupRequest) -> Lookup:
    return Lookup(
        chain=Chain.parsed(request.kv_layout_id, request.addresses),
        lease_ms=request.lease_ms if request.HasField("lease_ms") else None,
        reads_memory=request.transport == pb.MEMORY_TRANSPORT_MOONCAKE,
    )


def fetch_from(request: pb.FetchRequest) -> Fetch:
    return Fetch(
        chain=Chain.parsed(request.kv_layout_id, request.addresses), wait_ms=request.wait_ms
    )


def release_from(request: pb.ReleaseRequest) -> Release:
    return Release(lease_id=request.lease_id, incarnation=request.incarnation)


def lookup_response(found: Found, incarnation: int) -> pb.LookupResponse:
    response = pb.LookupResponse(found=found.blocks, incarnation=incarnation)
    if found.loan is not None:
        response.lease.id = found.loan.id
        response.lease.expires_ms = found.loan.expires_ms
    if found.region is not None:
        response.region.session = found.region.session
        response.region.offsets.extend(found.region.offsets)
        response.region.block_bytes = found.region.block_bytes
        response.region.checksums = b"".join(found.region.checksums)
    return response


def fetch_responses(blocks: Sequence[LentBlock], incarnation: int) -> Iterator[pb.FetchResponse]:
    """Messages of at most MESSAGE_BYTES; a large block goes over several."""
    response, room = pb.FetchResponse(incarnation=incarnation), MESSAGE_BYTES
    for block in blocks:
        size = len(block.payload)
        for at in range(0, size, MESSAGE_BYTES):
            end = min(at + MESSAGE_BYTES, size)
            if end - at > room:
                yield response
                response, room = pb.FetchResponse(incarnation=incarnation), MESSAGE_BYTES
            # In place: a part that is made apart is copied once more.
            part = response.parts.add(index=block.index, data=bytes(block.payload[at:end]))
            if end == size:
                part.checksum = block.checksum
            room -= end - at
    yield response
