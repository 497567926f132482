"""What the doors of metrics tell, and the sums that must hold in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.stack import Service, Stack

ROUTER, ENGINE = "tokenway_router", "tokenway_engine"
IDENTITIES: Mapping[str, Sequence[str]] = {
    "tokenway_codec_requests_started_total": (
        "tokenway_codec_requests_running",
        "tokenway_codec_requests_ended_total",
    ),
    f"{ROUTER}_generations_started_total": (
        f"{ROUTER}_generations_running",
        f"{ROUTER}_generations_waiting",
        f"{ROUTER}_generations_ended_total",
    ),
    f"{ENGINE}_generations_started_total": (
        f"{ENGINE}_generations_running",
        f"{ENGINE}_generations_waiting",
        f"{ENGINE}_generations_ended_total",
    ),
    f"{ENGINE}_prompt_tokens_total": (
        f"{ENGINE}_computed_tokens_total",
        f"{ENGINE}_cached_tokens_total",
    ),
    "tokenway_kv_pool_blocks": ("tokenway_kv_blocks",),
    f"{ROUTER}_queue_wait_seconds_count": (f"{ROUTER}_legs_total{{cause=new}}",),
    f"{ROUTER}_legs_total": (f"{ROUTER}_decisions_total",),
    f"{ROUTER}_generations_ended_total{{outcome=failed}}": (
        f"{ROUTER}_errors_total{{outcome=failed}}",
    ),
    f"{ROUTER}_generations_ended_total{{outcome=refused}}": (
        f"{ROUTER}_errors_total{{outcome=refused}}",
    ),
}
"""At each scrape the first is the sum of the others, all their labels together."""

AT_REST = (
    "tokenway_codec_requests_running",
    f"{ROUTER}_generations_running",
    f"{ROUTER}_generations_waiting",
    f"{ENGINE}_generations_running",
    f"{ENGINE}_generations_waiting",
)
"""Nothing, where nothing is asked any more."""


@dataclass(frozen=True)
class Scrape:
    """Samples by name and labels."""

    samples: Sequence[tuple[str, Mapping[str, str], float]]

    def of(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name which have these labels."""
        return sum(
            value
            for of_name, has, value in self.samples
            if of_name == name and labels.items() <= has.items()
        )

    def series(self) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        return {(name, frozenset(labels.items())) for name, labels, _ in self.samples}

    def broken(self) -> list[str]:
        """Sums that do not hold."""
        names = {name for name, _, _ in self.samples}
        faults = []
        for whole, parts in IDENTITIES.items():
            if whole.partition("{")[0] in names:
                is_told, summed = self._of(whole), sum(map(self._of, parts))
                if is_told != summed:
                    faults.append(f"{whole} is {is_told:g}, not {summed:g}: {' + '.join(parts)}")
        return faults

    def restless(self) -> list[str]:
        """What is counted as running or waiting."""
        return [f"{name} is {self.of(name):g}" for name in AT_REST if self.of(name)]

    def _of(self, told: str) -> float:
        name, _, labels = told.partition("{")
        return self.of(name, **dict(re.findall(r"(\w+)=(\w+)", labels)))


def scraped(service: Service) -> Scrape:
    told = httpx.get(f"http://{service.doors['metrics']}/metrics")
    assert told.status_code == 200
    families = text_string_to_metric_families(told.text)
    return Scrape([(s.name, s.labels, s.value) for family in families for s in family.samples])


def miscounted(stack: Stack) -> list[str]:
    """What services at rest count wrongly."""
    faults = []
    for service in stack.services:
        scrape = scraped(service)
        told = [*scrape.broken(), *scrape.restless()]
        faults += [f"{service.log.stem} counts wrongly: {fault}" for fault in told]
    return faults
