"""What NVML tells of an engine's device, for Prometheus; nothing where it tells nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.engine.nvml import DeviceFigures, Throttle
from services.shared.metric_families import gauges
from services.shared.stream.load import DeviceMemory


class DeviceMetrics(Collector):
    """Args: read: the figures of the device."""

    def __init__(self, read: Callable[[], DeviceFigures]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        figures = self._read()
        device = str(figures.index)
        if figures.memory is not None:
            yield from _memory(device, figures.memory)
        if figures.utilization is not None:
            yield gauges(
                "tokenway_gpu_utilization_ratio",
                "Share of time in which the device computed.",
                ["device"],
                {device: figures.utilization / 100},
            )
        if figures.temperature is not None:
            yield gauges(
                "tokenway_gpu_temperature_celsius",
                "The device's temperature.",
                ["device"],
                {device: figures.temperature},
            )
        if figures.throttled is not None:
            yield gauges(
                "tokenway_gpu_throttled",
                "1 while the device is slowed down for that reason.",
                ["device", "reason"],
                {(device, reason): reason in figures.throttled for reason in Throttle},
            )


def _memory(device: str, memory: DeviceMemory) -> Iterator[Metric]:
    yield gauges(
        "tokenway_gpu_memory_bytes",
        "Memory of the device by state.",
        ["device", "state"],
        {(device, "used"): memory.used_bytes, (device, "free"): memory.free_bytes},
    )
    yield gauges(
        "tokenway_gpu_memory_total_bytes",
        "Memory of the device.",
        ["device"],
        {device: memory.total_bytes},
    )
