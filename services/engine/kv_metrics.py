"""What an engine tells Prometheus of its blocks by state, and of what each tier did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.engine.kv.figures import Figures
from services.engine.kv.tier import Skip
from services.engine.progress import Progress
from services.shared.metric_families import counters, gauge, gauges, histograms
from services.shared.stream.events import CacheMiss


class KvMetrics(Collector):
    """Reads figures that others keep, for any thread.

    The blocks of all states sum up to `tokenway_kv_pool_blocks`, which is of the same moment.
    """

    def __init__(self, progress: Progress, figures: Figures) -> None:
        self._progress = progress
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        yield from self._blocks()
        yield from self._tiers()
        yield histograms(
            "tokenway_kv_read_seconds",
            "Time of reading the blocks of one prompt, or as many as came.",
            ["tier"],
            [([tier], figures.reads) for tier, figures in self._figures.items()],
        )
        yield counters(
            "tokenway_kv_miss_blocks",
            "Blocks that a prompt needed and the tier had not, by cause.",
            ["tier", "cause"],
            {
                (tier, cause.name.lower()): figures.misses[cause]
                for tier, figures in self._figures.items()
                for cause in CacheMiss
            },
        )
        yield counters(
            "tokenway_kv_skipped_blocks",
            "Blocks that were to be written and were not, by cause.",
            ["tier", "cause"],
            {
                (tier, cause): figures.skips[cause]
                for tier, figures in self._figures.items()
                for cause in Skip
            },
        )

    def _blocks(self) -> Iterator[Metric]:
        counts = asdict(self._progress.blocks)
        total = counts.pop("total")
        yield gauge("tokenway_kv_pool_blocks", "KV blocks of the pool.", total)
        yield gauges("tokenway_kv_blocks", "KV blocks of the pool by state.", ["state"], counts)

    def _tiers(self) -> Iterator[Metric]:
        for name, words in (
            ("hit_blocks", "Blocks that a prompt needed and the tier had."),
            ("read_bytes", "Bytes of blocks that were read."),
            ("written_blocks", "Blocks that were written."),
            ("written_bytes", "Bytes of blocks that were written."),
        ):
            told = {tier: getattr(figures, name) for tier, figures in self._figures.items()}
            yield counters(f"tokenway_kv_{name}", words, ["tier"], told)
