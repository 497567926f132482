"""Settings of the queue before the replicas."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.admission.admission_rules import AdmissionRules
from services.router.demand import Lane
from services.router.fleet.room import RoomRules
from services.shared.bounds import at_least, within
from services.shared.stream.generation import MAX_WEIGHT, MIN_WEIGHT


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantWeight:
    """An entry of a list of tenants' weights: `tenant=weight`, or a mapping of these fields."""

    tenant: str
    weight: float

    def __post_init__(self) -> None:
        within("weight", self.weight, MIN_WEIGHT, MAX_WEIGHT)

    @classmethod
    def parse(cls, text: str) -> TenantWeight:
        """Raises ValueError when `text` is not `tenant=weight`."""
        tenant, _, weight = text.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            raise ValueError(f"weight must be given as tenant=weight, got {text!r}") from None
        return cls(tenant=tenant, weight=number)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSettings:
    """Who waits before the replicas, and how little waits at them.

    At most `max_waiting` new generations wait; without any replica those that wait do so for
    `wait_for_replica_s` more. A replica that does not tell its slots has `slots`; prompts of so
    many tokens of each lane wait there to be computed.
    """

    max_waiting: int = 2048
    wait_for_replica_s: float = 30.0
    slots: int = 64
    short_window_tokens: int = 8192
    long_window_tokens: int = 16384
    tenant_weights: tuple[TenantWeight, ...] = ()

    def __post_init__(self) -> None:
        within("max_waiting", self.max_waiting, 0, 1_000_000)
        within("wait_for_replica_s", self.wait_for_replica_s, 0, 3600)
        within("slots", self.slots, 1, 65536)
        at_least("short_window_tokens", self.short_window_tokens, 1)
        at_least("long_window_tokens", self.long_window_tokens, 1)
        names = [entry.tenant for entry in self.tenant_weights]
        if len(set(names)) < len(names):
            raise ValueError(f"tenant_weights must name each tenant once, got {', '.join(names)}")

    def admission(self) -> AdmissionRules:
        return AdmissionRules(
            max_waiting=self.max_waiting,
            wait_for_replica_s=self.wait_for_replica_s,
            tenant_weights={entry.tenant: entry.weight for entry in self.tenant_weights},
        )

    def room(self) -> RoomRules:
        window = {Lane.SHORT: self.short_window_tokens, Lane.LONG: self.long_window_tokens}
        return RoomRules(slots=self.slots, window=window)
