"""What an engine tells Prometheus: its steps, its blocks by state, and what each tier did."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from services.engine.kv.figures import READ_BUCKETS_S, Figures, TierFigures
from services.engine.kv.tier import Skip
from services.engine.progress import Progress
from services.shared.metrics_door import metrics_door
from services.shared.stream.events import CacheMiss

_BOUNDS = [*(str(bound) for bound in READ_BUCKETS_S), "+Inf"]


class EngineMetrics(Collector):
    """Reads figures that others keep. All values of labels are of sets that the code closes.

    The blocks of all states sum up to `tokenway_kv_pool_blocks`, which is of the same moment.
    """

    def __init__(self, progress: Progress, figures: Figures) -> None:
        self._progress = progress
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        """For any thread."""
        yield from self._steps()
        yield from self._blocks()
        yield from self._tiers()
        yield self._read_seconds()
        yield self._misses()
        yield self._skips()

    def _steps(self) -> Iterator[Metric]:
        load = self._progress.load
        yield CounterMetricFamily(
            "tokenway_engine_steps", "Steps computed.", value=self._progress.steps
        )
        yield GaugeMetricFamily(
            "tokenway_engine_running", "Generations in the batch.", value=load.running
        )
        yield GaugeMetricFamily(
            "tokenway_engine_waiting",
            "Generations that wait for a place in the batch.",
            value=load.waiting,
        )

    def _blocks(self) -> Iterator[Metric]:
        counts = asdict(self._progress.blocks)
        total = counts.pop("total")
        yield GaugeMetricFamily("tokenway_kv_pool_blocks", "KV blocks of the pool.", value=total)
        blocks = GaugeMetricFamily(
            "tokenway_kv_blocks", "KV blocks of the pool by state.", labels=["state"]
        )
        for state, count in counts.items():
            blocks.add_metric([state], count)
        yield blocks

    def _tiers(self) -> Iterator[Metric]:
        for name, words, attribute in (
            ("hit_blocks", "Blocks that a prompt needed and the tier had.", "hit_blocks"),
            ("read_bytes", "Bytes of blocks that were read.", "read_bytes"),
            ("written_blocks", "Blocks that were written.", "written_blocks"),
            ("written_bytes", "Bytes of blocks that were written.", "written_bytes"),
        ):
            family = CounterMetricFamily(f"tokenway_kv_{name}", words, labels=["tier"])
            for tier, figures in self._figures.items():
                family.add_metric([tier], getattr(figures, attribute))
            yield family

    def _read_seconds(self) -> Metric:
        family = HistogramMetricFamily(
            "tokenway_kv_read_seconds",
            "Time of reading the blocks of one prompt, or as many as came.",
            labels=["tier"],
        )
        for tier, figures in self._figures.items():
            family.add_metric([tier], _cumulated(figures), figures.read_s)
        return family

    def _misses(self) -> Metric:
        family = CounterMetricFamily(
            "tokenway_kv_miss_blocks",
            "Blocks that a prompt needed and the tier had not, by cause.",
            labels=["tier", "cause"],
        )
        for tier, figures in self._figures.items():
            for cause in CacheMiss:
                family.add_metric([tier, cause.name.lower()], figures.misses[cause])
        return family

    def _skips(self) -> Metric:
        family = CounterMetricFamily(
            "tokenway_kv_skipped_blocks",
            "Blocks that were to be written and were not, by cause.",
            labels=["tier", "cause"],
        )
        for tier, figures in self._figures.items():
            for cause in Skip:
                family.add_metric([tier, cause], figures.skips[cause])
        return family


def _cumulated(figures: TierFigures) -> list[tuple[str, float]]:
    """Reads up to each bound, which is how Prometheus counts them."""
    reads = list(figures.reads)
    return [(bound, sum(reads[: at + 1])) for at, bound in enumerate(_BOUNDS)]


@asynccontextmanager
async def metrics_served(
    host: str, port: int | None, metrics: EngineMetrics
) -> AsyncIterator[dict[str, str]]:
    """Serves them and the process's own inside the block; gives the door, none without a port.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    if port is None:
        yield {}
        return
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    async with metrics_door(host, port, registry) as address:
        yield {"metrics": address}
