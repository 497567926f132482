"""What a router tells Prometheus of the generations that go through it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.router.admission.admission import Admission
from services.router.balancing.balancer import Balancer
from services.router.relay.relay import Relay
from services.router.relay.retry_budget import RetryBudget
from services.shared.errors import Code
from services.shared.metric_families import counter, counters, gauge, gauges, histogram

GENERATIONS = "tokenway_router_generations"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """Who keeps the figures."""

    relay: Relay
    admission: Admission
    balancer: Balancer
    budget: RetryBudget


class RouterMetrics(Collector):
    """Reads figures that others keep, on the event loop's thread.

    At each scrape the generations of all states sum up to those that came.
    """

    def __init__(self, sources: Sources) -> None:
        self._relay = sources.relay
        self._admission = sources.admission
        self._balancer = sources.balancer
        self._budget = sources.budget

    def collect(self) -> Iterable[Metric]:
        yield from self._generations()
        yield from self._queue()
        yield from self._legs()
        yield from self._retries()

    def _generations(self) -> Iterator[Metric]:
        figures, placed = self._relay.figures, self._relay.placed()
        yield counter(f"{GENERATIONS}_started", "Generations that came.", figures.started)
        yield gauge(f"{GENERATIONS}_running", "Generations that a replica has.", placed)
        waiting = self._relay.running - placed
        yield gauge(f"{GENERATIONS}_waiting", "Generations that wait for a place.", waiting)
        yield counters(
            f"{GENERATIONS}_ended", "Generations that ended.", ["outcome"], figures.ended
        )
        yield counters(
            "tokenway_router_errors",
            "Generations that failed or were refused.",
            ["outcome", "code"],
            {(end, _name(code)): count for (end, code), count in figures.errors.items()},
        )
        yield counter(
            "tokenway_router_relayed_tokens", "Output tokens passed on.", figures.relayed_tokens
        )

    def _queue(self) -> Iterator[Metric]:
        load = self._admission.load()
        yield gauges(
            "tokenway_router_queue_waiting",
            "Generations in the queue.",
            ["class"],
            self._admission.waiting_by_class(),
        )
        yield gauge(
            "tokenway_router_queue_tokens", "Tokens that these are expected to cost.", load.tokens
        )
        yield gauge(
            "tokenway_router_queue_expected_wait_seconds",
            "Until the interactive ones have gone.",
            load.expected_wait_ms / 1000,
        )
        yield counters(
            "tokenway_router_queue_refusals",
            "Generations that might not wait.",
            ["cause"],
            self._admission.refusals,
        )
        yield histogram(
            "tokenway_router_queue_wait_seconds",
            "From a generation's arrival to its first place.",
            self._relay.figures.queue_seconds,
        )

    def _legs(self) -> Iterator[Metric]:
        figures = self._relay.figures
        yield counters(
            "tokenway_router_legs", "Generations sent to a replica.", ["cause"], figures.legs
        )
        yield counters(
            "tokenway_router_decisions",
            "Legs by what spoke for the replica.",
            ["reason"],
            self._balancer.decisions,
        )
        yield counters(
            "tokenway_router_prefills_ended",
            "Prompts that another replica computed, or was to.",
            ["outcome"],
            figures.prefills,
        )

    def _retries(self) -> Iterator[Metric]:
        figures = self._relay.figures
        yield counters(
            "tokenway_router_setbacks",
            "Generations that a replica failed or did not take.",
            ["code"],
            {_name(code): count for code, count in figures.setbacks.items()},
        )
        yield counter(
            "tokenway_router_continuations",
            "Legs of generations that had been accepted before.",
            figures.continuations,
        )
        yield gauge(
            "tokenway_router_retry_budget",
            "Generations that may be sent elsewhere after a failure.",
            self._budget.left,
        )
        yield counter(
            "tokenway_router_retries_refused",
            "Generations that the budget did not let go on.",
            self._budget.refused,
        )


def _name(code: Code) -> str:
    return code.name.lower()
