"""Settings of Mooncake's TransferEngine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address

from services.shared.bounds import at_least
from services.shared.byte_size import ByteSize


class MooncakeProtocol(StrEnum):
    TCP = "tcp"
    RDMA = "rdma"


@dataclass(frozen=True, kw_only=True, slots=True)
class MooncakeSettings:
    """Mooncake's TransferEngine, which knows neither encryption nor who asks.

    Others reach it at `host`; it listens on all interfaces, whatever that is. So any other host
    than loopback needs `unprotected`: the network must be nobody else's. Of `staging_bytes`, others
    can read, and write, copies of lent blocks.
    """

    host: str = "127.0.0.1"
    protocol: MooncakeProtocol = MooncakeProtocol.TCP
    unprotected: bool = False
    staging_bytes: ByteSize = ByteSize(256 * 2**20)

    def __post_init__(self) -> None:
        at_least("staging_bytes", self.staging_bytes, 1)
        if not self.unprotected and not _is_loopback(self.host):
            raise ValueError(
                f"mooncake.host must be a loopback address unless mooncake.unprotected is true, "
                f"got {self.host!r}"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
