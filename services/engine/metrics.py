"""What an engine tells Prometheus of its generations and its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.engine.assembly import Assembly
from services.engine.device_metrics import DeviceMetrics
from services.engine.generation_counts import GenerationCounts
from services.engine.kv_metrics import KvMetrics
from services.engine.progress import Progress
from services.shared.metric_families import counter, counters, gauge, histogram

GENERATIONS = "tokenway_engine_generations"


class EngineMetrics(Collector):
    """Reads figures that others keep, on the event loop's thread.

    At each scrape the generations of all states sum up to those that came, and the prompts' tokens
    to those computed and those found.
    """

    def __init__(self, count: Callable[[], GenerationCounts], progress: Progress) -> None:
        self._count = count
        self._progress = progress

    def collect(self) -> Iterable[Metric]:
        yield from self._generations()
        yield from self._tokens()
        yield from self._steps()

    def _generations(self) -> Iterator[Metric]:
        counts = self._count()
        yield counter(f"{GENERATIONS}_started", "Generations that came.", counts.started)
        for name, words, value in (
            ("running", "Generations in the batch.", counts.running),
            ("waiting", "Generations that are not in the batch.", counts.waiting),
            ("fetching", "Waiting generations whose blocks are on their way.", counts.fetching),
        ):
            yield gauge(f"{GENERATIONS}_{name}", words, value)
        yield counters(
            f"{GENERATIONS}_ended", "Generations that ended.", ["outcome"], dict(counts.ended)
        )
        yield counter(
            "tokenway_engine_preemptions",
            "Generations that gave up their blocks for older ones.",
            self._progress.preemptions,
        )

    def _tokens(self) -> Iterator[Metric]:
        figures = self._progress.figures
        prompts = figures.prompts
        for name, words, value in (
            ("prompt", "Tokens of prompts that are complete.", prompts.tokens),
            ("computed", "Tokens of prompts that were computed.", prompts.computed),
            ("recomputed", "Tokens that were computed again.", self._progress.recomputed_tokens),
            ("output", "Tokens drawn.", figures.output_tokens),
        ):
            yield counter(f"tokenway_engine_{name}_tokens", words, value)
        yield counters(
            "tokenway_engine_cached_tokens",
            "Tokens of prompts that were found.",
            ["tier"],
            asdict(prompts.cached),
        )

    def _steps(self) -> Iterator[Metric]:
        figures = self._progress.figures
        yield counter("tokenway_engine_steps", "Steps computed.", self._progress.steps)
        yield counters(
            "tokenway_engine_step_phase_seconds",
            "Time of all steps by phase.",
            ["phase"],
            {phase: spent_ns / 1e9 for phase, spent_ns in figures.phases.items()},
        )
        for name, words, distribution in (
            ("queue_wait_seconds", "From arrival to the first step.", figures.queue_seconds),
            ("step_seconds", "A step, from its commands to its results.", figures.seconds),
            ("schedule_seconds", "A step until its work is known.", figures.schedule_seconds),
            ("batch_size", "Generations in a step.", figures.batch_sizes),
        ):
            yield histogram(f"tokenway_engine_{name}", words, distribution)


def collectors_of(assembly: Assembly) -> list[Collector]:
    progress = assembly.loop.progress
    return [
        EngineMetrics(assembly.engine.counts, progress),
        KvMetrics(progress, assembly.caches.figures),
        DeviceMetrics(assembly.monitor.figures),
    ]
