"""The client's end of a connection between services."""

from __future__ import annotations

import grpc

from services.shared.channel_options import CLIENT_OPTIONS


def open_channel(
    address: str, credentials: grpc.ChannelCredentials | None = None
) -> grpc.aio.Channel:
    """A channel to `host:port`; it connects when first used, and the caller closes it.

    Args: credentials: of mutual TLS; None for a connection in the clear.
    """
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
    return grpc.aio.secure_channel(address, credentials, options=CLIENT_OPTIONS)
