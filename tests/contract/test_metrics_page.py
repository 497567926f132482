"""The metrics page lists what each service tells, under the names and labels that it has."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.codec.listeners import Listeners
from services.codec.metrics import CodecMetrics
from services.codec.metrics import Sources as CodecSources
from services.engine.blocks import BlockPool
from services.engine.device_metrics import DeviceMetrics
from services.engine.generation_counts import GenerationCounts
from services.engine.kv.figures import new_figures
from services.engine.kv_metrics import KvMetrics
from services.engine.metrics import EngineMetrics
from services.engine.nvml import DeviceFigures
from services.engine.progress import Progress
from services.engine.scheduler import Limits, Scheduler
from services.router.admission.admission import Admission
from services.router.balancing.balancer import Balancer
from services.router.fleet.fleet import Fleet
from services.router.fleet_metrics import FleetMetrics
from services.router.journal import SpanJournal
from services.router.metrics import RouterMetrics, Sources
from services.router.relay.relay import Relay
from services.router.relay.retry_budget import RetryBudget
from services.shared.access.denials import Denials
from services.shared.audit.audit import NO_AUDIT
from services.shared.gc_pauses import GcPauses
from services.shared.grpc_traffic import Traffic
from services.shared.loop_lag import LoopLag
from services.shared.mesh.mesh import ClearMesh
from services.shared.process_metrics import Process, ProcessMetrics
from services.shared.stream.load import DeviceMemory

PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
ROW = re.compile(r"^\| `((?:tokenway|gen_ai)_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|", re.MULTILINE)
BOUNDS = re.compile(r"^\| (`\S+`(?:, `\S+`)*) \| ([\d., …]+) \|", re.MULTILINE)
ENDS = {"counter": "_total"}
OPEN = {"version", "device"}
"""Labels whose values are no words."""


class Certified(ClearMesh):
    """One whose certificate ends."""

    not_after: float | None = 1


def process() -> list[Collector]:
    clock = asyncio.get_running_loop()
    told = Process(service="engine", mesh=Certified(Denials(clock), NO_AUDIT))
    return [ProcessMetrics(told, LoopLag(clock), GcPauses())]


def codec() -> list[Collector]:
    sources = CodecSources(
        listeners=Listeners(),
        connections=lambda: 0,
        is_router_up=lambda: True,
        is_ready=lambda: True,
        quota_store_up=lambda: 1,
        quota_questions=lambda: dict.fromkeys(("answered", "unanswered", "lost", "late"), 0),
        logged_rows=lambda: {"written": 0, "dropped": 0},
    )
    return [CodecMetrics(sources)]


def router() -> list[Collector]:
    clock = asyncio.get_running_loop()
    fleet = Fleet(clock)
    admission = Admission(fleet, clock, lambda: 0.5)
    sources = Sources(
        relay=Relay(fleet, admission, clock, SpanJournal()),
        admission=admission,
        balancer=Balancer(),
        budget=RetryBudget(),
    )
    return [RouterMetrics(sources), FleetMetrics(fleet, clock, Traffic())]


def engine() -> list[Collector]:
    progress = Progress(Scheduler(BlockPool(1, 16), Limits(max_batch_size=1, token_budget=2)))
    device = DeviceFigures(
        index=0,
        memory=DeviceMemory(total_bytes=2, used_bytes=1, free_bytes=1),
        utilization=1,
        temperature=1,
        throttled=frozenset(),
    )
    return [
        EngineMetrics(GenerationCounts, progress),
        KvMetrics(progress, new_figures()),
        DeviceMetrics(lambda: device),
    ]


SERVICES = {"Every service": process, "Codec": codec, "Router": router, "Engine": engine}
MAYBE = "Where there is something to tell of"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


Row = tuple[str, str, frozenset[str]]


def rows(title: str) -> set[Row]:
    found = ROW.findall(section(title))
    return {(name, kind, frozenset(labels.split(",")) - {""}) for name, labels, kind in found}


def families(collectors: Iterable[Collector]) -> list[Metric]:
    return [family for collector in collectors for family in collector.collect()]


def told(family: Metric) -> Row:
    labels = {name for sample in family.samples for name in sample.labels} - {"le"}
    return family.name + ENDS.get(family.type, ""), family.type, frozenset(labels)


@pytest.fixture
async def by_section() -> dict[str, list[Metric]]:
    return {title: families(make()) for title, make in SERVICES.items()}


async def test_the_page_lists_every_metric_and_no_other(
    by_section: dict[str, list[Metric]],
) -> None:
    may_be = rows(MAYBE)
    for title, service in by_section.items():
        assert rows(title) == {told(family) for family in service} - may_be, title
    assert may_be <= {told(family) for service in by_section.values() for family in service}


async def test_the_page_explains_every_value_of_a_label(
    by_section: dict[str, list[Metric]],
) -> None:
    explained = section("Values of labels")
    values = {
        value
        for service in by_section.values()
        for family in service
        for sample in family.samples
        for name, value in sample.labels.items()
        if name not in OPEN | {"le"} and value
    }
    assert not {value for value in values if f"`{value}`" not in explained}


async def test_the_page_names_the_bounds_of_every_histogram(
    by_section: dict[str, list[Metric]],
) -> None:
    patterns = {
        name.replace("*", ".*"): bounds
        for names, bounds in BOUNDS.findall(section("Bounds of buckets"))
        for name in re.findall(r"`(\S+)`", names)
    }
    histograms = [f for service in by_section.values() for f in service if f.type == "histogram"]
    assert histograms
    for family in histograms:
        [bounds] = [text for name, text in patterns.items() if re.fullmatch(name, family.name)]
        told_bounds = [float(s.labels["le"]) for s in family.samples if "le" in s.labels]
        told_bounds = told_bounds[: told_bounds.index(float("inf"))]
        first, gap, last = bounds.partition("…")
        numbers = [float(number) for number in re.findall(r"[\d.]+", first)]
        assert told_bounds[: len(numbers)] == numbers, family.name
        assert told_bounds[-1] == float(last if gap else numbers[-1]), family.name
