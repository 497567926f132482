"""How one service calls another: in the clear, or with certificates on both sides."""

from __future__ import annotations

from collections.abc import Callable

import grpc

from services.shared.channel import open_channel
from services.shared.channel_options import CLIENT_OPTIONS
from services.shared.tls.certificate_files import Certificates

Dial = Callable[[str], grpc.aio.Channel]
"""A channel to `host:port`, made when it is called for; the caller closes it."""


def in_the_clear(address: str) -> grpc.aio.Channel:
    return open_channel(address)


def dialling(certificates: Callable[[], Certificates], name: str) -> Dial:
    """Shows our certificate, and talks to nobody whose certificate does not carry `name`.

    Args:
        certificates: as they are now, read for each channel.
        name: see `server_name`; addresses are found at run time, and stand in no certificate.
    """

    def dial(address: str) -> grpc.aio.Channel:
        ours = certificates()
        credentials = grpc.ssl_channel_credentials(ours.ca, ours.key, ours.chain)
        options = (*CLIENT_OPTIONS, ("grpc.ssl_target_name_override", name))
        return grpc.aio.secure_channel(address, credentials, options=options)

    return dial
