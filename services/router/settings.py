"""Settings of a router."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.router.health import HealthRules
from services.router.retry_budget import RetryRules
from services.shared.bounds import at_least, within
from services.shared.settings import ServerSettings, TelemetrySettings


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


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterSettings:
    """Where the router listens and what is behind it.

    `replicas` are `host:port` of token stream services, engines or routers.
    """

    replicas: tuple[str, ...]
    server: ServerSettings = ServerSettings(port=9000)
    service: ServiceSettings = ServiceSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def __post_init__(self) -> None:
        if not self.replicas:
            raise ValueError("replicas must name at least one host:port, got none")
        for address in self.replicas:
            host, _, port = address.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) <= 65535:
                raise ValueError(f"replicas must be host:port with port 1 to 65535, got {address}")
        if len(set(self.replicas)) < len(self.replicas):
            raise ValueError(f"replicas must differ, got {', '.join(self.replicas)}")
