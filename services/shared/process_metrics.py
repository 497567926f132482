"""What every service tells Prometheus of its process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.shared.gc_pauses import GcPauses
from services.shared.grpc_traffic import Traffic
from services.shared.loop_lag import LoopLag
from services.shared.mesh.mesh import Mesh
from services.shared.metric_families import counter, counters, gauge, gauges, histogram, histograms
from services.shared.metrics_door import metrics_door
from services.shared.span_export import dropped_spans


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """A service as its metrics tell of it.

    Args:
        service: codec, router or engine.
        mesh: knows whom its doors refused, and when its certificate ends.
        traffic: through its gRPC door.
    """

    service: str
    mesh: Mesh
    traffic: Traffic = field(default_factory=Traffic)


class ProcessMetrics(Collector):
    """Reads figures that others keep."""

    def __init__(self, process: Process, lag: LoopLag, pauses: GcPauses) -> None:
        self._process = process
        self._lag = lag
        self._pauses = pauses

    def collect(self) -> Iterable[Metric]:
        yield gauges(
            "tokenway_build_info",
            "1, for the version that runs.",
            ["version", "service"],
            {(_version(), self._process.service): 1},
        )
        yield histogram(
            "tokenway_event_loop_lag_seconds",
            "How late a timer of the event loop came.",
            self._lag.seconds,
        )
        yield histograms(
            "tokenway_gc_pause_seconds",
            "Pauses of the garbage collector.",
            ["generation"],
            [([str(number)], seconds) for number, seconds in enumerate(self._pauses.seconds)],
        )
        yield from traffic_metrics("tokenway_grpc", self._process.traffic)
        yield counters(
            "tokenway_access_refused",
            "Who was refused for a key, an address or a role.",
            ["cause"],
            self._process.mesh.denials.counts,
        )
        yield counter("tokenway_spans_dropped", "Spans that no collector got.", dropped_spans())
        expiry = self._process.mesh.not_after
        if expiry is not None:
            yield gauge(
                "tokenway_certificate_expiry_timestamp_seconds",
                "When the certificate of the service ends.",
                expiry,
            )


def traffic_metrics(name: str, traffic: Traffic) -> Iterable[Metric]:
    """Args: name: what the metrics' names begin with."""
    messages = {"received": traffic.received_messages, "sent": traffic.sent_messages}
    sizes = {"received": traffic.received_bytes, "sent": traffic.sent_bytes}
    yield counters(f"{name}_messages", "gRPC messages.", ["direction"], messages)
    yield counters(f"{name}_bytes", "Bytes of gRPC messages.", ["direction"], sizes)


@asynccontextmanager
async def metrics_served(
    host: str, port: int | None, process: Process, *collectors: Collector
) -> AsyncIterator[dict[str, str]]:
    """Serves them and the process's own inside the block; gives the door, none without a port.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    if port is None:
        yield {}
        return
    lag, pauses = LoopLag(asyncio.get_running_loop()), GcPauses()
    registry = CollectorRegistry()
    for collector in (*collectors, ProcessMetrics(process, lag, pauses)):
        registry.register(collector)
    ProcessCollector(registry=registry)
    with lag.measured(), pauses.measured():
        async with metrics_door(host, port, registry) as address:
            yield {"metrics": address}


@cache
def _version() -> str:
    try:
        return version("tokenway")
    except PackageNotFoundError:  # run from its sources
        return "unknown"
