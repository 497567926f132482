"""Where a node of a store listens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeAddress:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def node_address(text: str) -> NodeAddress:
    """Reads `host:port` or `[v6]:port`. Raises ValueError naming what it got."""
    host, colon, digits = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "/" in host:
        raise ValueError(f"must be host:port, got {text!r}")
    if not (colon and host and digits.isascii() and digits.isdigit()):
        raise ValueError(f"must be host:port, got {text!r}")
    if not 1 <= int(digits) <= 65535:
        raise ValueError(f"must have a port between 1 and 65535, got {text!r}")
    return NodeAddress(host, int(digits))
