"""How an operator names a replica."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.demand import Lane
from services.shared.bounds import within

MAX_WEIGHT = 1000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaSpec:
    """An entry of a list of replicas: `host:port`, or a mapping of these fields.

    Args:
        address: `host:port` of a token stream service, an engine or a router.
        weight: its share of new generations against the others'; 0 takes nothing new.
        pool: the prompts that it is for; None for all.
    """

    address: str
    weight: float = 1.0
    pool: Lane | None = None

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= 65535:
            raise ValueError(f"address must be host:port with port 1 to 65535, got {self.address}")
        within("weight", self.weight, 0, MAX_WEIGHT)

    @property
    def lanes(self) -> frozenset[Lane]:
        """Lengths of prompts that it takes."""
        return frozenset(Lane) if self.pool is None else frozenset({self.pool})

    @classmethod
    def parse(cls, text: str) -> ReplicaSpec:
        """Raises ValueError when `text` is not `host:port`."""
        return cls(address=text)
