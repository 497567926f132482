"""The metrics page lists what an engine tells, under the names and labels that it has."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.core import Metric

from services.engine.blocks import BlockPool
from services.engine.kv.figures import new_figures
from services.engine.kv.tier import Skip, Tier
from services.engine.metrics import EngineMetrics
from services.engine.progress import Progress
from services.engine.scheduler import Limits, Scheduler
from services.shared.stream.events import CacheMiss

PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text()


def families() -> list[Metric]:
    scheduler = Scheduler(BlockPool(1, 16), Limits(max_batch_size=1, token_budget=2))
    return list(EngineMetrics(Progress(scheduler), new_figures()).collect())


def labels(family: Metric) -> set[str]:
    return {name for sample in family.samples for name in sample.labels} - {"le"}


def test_the_page_lists_every_metric_and_no_other() -> None:
    rows = re.findall(r"^\| `(tokenway_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|", PAGE, re.MULTILINE)
    listed = {(name, kind, frozenset(has.split(",")) - {""}) for name, has, kind in rows}
    ends = {"counter": "_total"}
    told = {
        (family.name + ends.get(family.type, ""), family.type, frozenset(labels(family)))
        for family in families()
    }
    assert listed == told


def test_the_page_explains_every_value_of_a_label() -> None:
    values = {*Tier, *Skip, *(cause.name.lower() for cause in CacheMiss)}
    values |= {
        sample.labels["state"]
        for family in families()
        for sample in family.samples
        if "state" in sample.labels
    }
    assert not {value for value in values if f"`{value}`" not in PAGE}
