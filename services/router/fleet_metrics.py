"""What a router tells Prometheus of its replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.router.clock import Clock
from services.router.fleet.fleet import Fleet
from services.router.status import Status
from services.shared.grpc_traffic import Traffic
from services.shared.metric_families import gauge, gauges
from services.shared.process_metrics import traffic_metrics


class FleetMetrics(Collector):
    """Reads figures that others keep, on the event loop's thread.

    Args:
        fleet: all replicas.
        clock: the one that tells when loads came.
        traffic: of the sessions with replicas.
    """

    def __init__(self, fleet: Fleet, clock: Clock, traffic: Traffic) -> None:
        self._fleet = fleet
        self._clock = clock
        self._traffic = traffic

    def collect(self) -> Iterable[Metric]:
        replicas = list(self._fleet)
        counts = Counter(replica.status for replica in replicas)
        yield gauges(
            "tokenway_router_replicas",
            "Replicas by state.",
            ["state"],
            {status.name.lower(): counts[status] for status in Status},
        )
        now = self._clock.time()
        ages_s = [now - one.health.heard_at for one in replicas if one.load is not None]
        yield gauge(
            "tokenway_router_load_age_seconds",
            "Age of the oldest load that a connected replica told last.",
            max(ages_s, default=0.0),
        )
        yield from traffic_metrics("tokenway_router_client", self._traffic)
