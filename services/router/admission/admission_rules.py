"""How many generations wait before the replicas, how long, and who goes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionRules:
    """Bounds of waiting.

    Args:
        max_waiting: new generations that wait at a time.
        wait_for_replica_s: how long those that were taken wait for a replica while there is none.
        tenant_weights: shares of tenants against the others'; 1 for who is not named.
    """

    max_waiting: int = 2048
    wait_for_replica_s: float = 30.0
    tenant_weights: Mapping[str, float] = field(default_factory=dict)
