"""The client's end of a connection between services."""

from __future__ import annotations

import grpc

from services.shared.channel_options import CLIENT_OPTIONS


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel in the clear to `host:port`; it connects when first used, the caller closes it."""
    return grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
