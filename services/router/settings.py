"""Settings of a router."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.router.admission.queue_settings import QueueSettings
from services.router.balancing.balancing_settings import BalancingSettings
from services.router.fleet.health import HealthRules
from services.router.fleet.prefill_rules import PrefillRules
from services.router.relay.retry_budget import RetryRules
from services.router.replica_spec import ReplicaSpec
from services.router.security_settings import RouterSecurity
from services.shared.bounds import at_least, within
from services.shared.settings import MetricsSettings, ServerSettings, TelemetrySettings


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """Told to stop, it takes what comes for `settle_s`, then waits `drain_timeout_s` at most."""

    settle_s: float = 5.0
    drain_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        within("settle_s", self.settle_s, 0, 3600)
        at_least("drain_timeout_s", self.drain_timeout_s, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSettings:
    limits: LimitSettings = LimitSettings()
    health: HealthRules = field(default_factory=HealthRules)
    retry: RetryRules = field(default_factory=RetryRules)
    queue: QueueSettings = field(default_factory=QueueSettings)
    balancing: BalancingSettings = field(default_factory=BalancingSettings)
    prefill: PrefillRules = field(default_factory=PrefillRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscoverySettings:
    """Replicas that are found while the router runs; asked again each `interval_s` seconds.

    Each address of a name of `names` is a replica; `file` is a YAML file with a list `replicas`.
    """

    names: tuple[ReplicaSpec, ...] = ()
    file: Path | None = None
    interval_s: float = 5.0

    def __post_init__(self) -> None:
        within("interval_s", self.interval_s, 0.05, 3600)


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterSettings:
    """Where the router listens and what is behind it.

    `replicas` are `host:port` of token stream services, engines or routers.
    """

    replicas: tuple[ReplicaSpec, ...] = ()
    discovery: DiscoverySettings = DiscoverySettings()
    server: ServerSettings = ServerSettings(port=9000)
    service: ServiceSettings = ServiceSettings()
    security: RouterSecurity = field(default_factory=RouterSecurity)
    metrics: MetricsSettings = MetricsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def __post_init__(self) -> None:
        addresses = [spec.address for spec in self.replicas]
        if not addresses and not self.discovery.names and self.discovery.file is None:
            raise ValueError(
                "replicas must name at least one host:port, or discovery.names or discovery.file "
                "must be set, got none"
            )
        if len(set(addresses)) < len(addresses):
            raise ValueError(f"replicas must differ, got {', '.join(addresses)}")
