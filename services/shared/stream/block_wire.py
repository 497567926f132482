"""Block events to messages and back; addresses stand one after the other."""

from __future__ import annotations

from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.addresses import ADDRESS_BYTES
from services.shared.errors import InvalidRequest
from services.shared.stream.blocks import BlockEvents


def blocks_of(events: BlockEvents) -> pb.BlockEvents:
    return pb.BlockEvents(
        sequence=events.sequence,
        snapshot=events.snapshot,
        stored=b"".join(events.stored),
        dropped=b"".join(events.dropped),
    )


def blocks_from(message: pb.BlockEvents) -> BlockEvents:
    """Raises: InvalidRequest: bytes that are no addresses."""
    return BlockEvents(
        sequence=message.sequence,
        snapshot=message.snapshot,
        stored=_addresses("blocks.stored", message.stored),
        dropped=_addresses("blocks.dropped", message.dropped),
    )


def _addresses(name: str, joined: bytes) -> list[bytes]:
    if len(joined) % ADDRESS_BYTES:
        raise InvalidRequest(
            f"{name} must be a multiple of {ADDRESS_BYTES} bytes, got {len(joined)}", field=name
        )
    return [joined[start : start + ADDRESS_BYTES] for start in range(0, len(joined), ADDRESS_BYTES)]
