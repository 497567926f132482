"""Settings of the connections of the HTTP door."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.shared.bounds import within
from services.shared.byte_size import ByteSize

MAX_COUNT = 2**20
MAX_S = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionSettings:
    """What callers may hold, and for how long.

    Args:
        max_open: connections at a time.
        max_per_address: of one address at a time, unless it is a trusted proxy's.
        max_header_bytes: of a request's head.
        max_headers: of a request.
        header_timeout_s: seconds until a request's head is there.
        body_timeout_s: seconds until its body is there.
        send_timeout_s: seconds in which a client must take some of what is sent.
        idle_timeout_s: seconds that a connection stays open between two requests.
    """

    max_open: int = 4096
    max_per_address: int = 1024
    max_header_bytes: ByteSize = field(default_factory=lambda: ByteSize(64 * 2**10))
    max_headers: int = 256
    header_timeout_s: float = 30.0
    body_timeout_s: float = 60.0
    send_timeout_s: float = 60.0
    idle_timeout_s: float = 75.0

    def __post_init__(self) -> None:
        within("max_open", self.max_open, 1, MAX_COUNT)
        within("max_per_address", self.max_per_address, 1, MAX_COUNT)
        within("max_header_bytes", self.max_header_bytes, 1024, 2**20)
        within("max_headers", self.max_headers, 1, 10_000)
        within("header_timeout_s", self.header_timeout_s, 0.001, MAX_S)
        within("body_timeout_s", self.body_timeout_s, 0.001, MAX_S)
        within("send_timeout_s", self.send_timeout_s, 0.001, MAX_S)
        within("idle_timeout_s", self.idle_timeout_s, 0.001, MAX_S)
