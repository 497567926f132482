"""What an engine tells Prometheus of its blocks, as a scraper reads it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.engine.blocks import BlockPool
from services.engine.kv.figures import READ_BUCKETS_S, Figures, new_figures
from services.engine.kv.tier import Skip, Tier
from services.engine.kv_metrics import KvMetrics
from services.engine.progress import Progress
from services.engine.scheduler import Limits, Scheduler
from services.shared.stream.events import CacheMiss

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def pool() -> BlockPool:
    return BlockPool(20, 16)


def scraped(pool: BlockPool, figures: Figures) -> Samples:
    registry = CollectorRegistry()
    scheduler = Scheduler(pool, Limits(max_batch_size=4, token_budget=64))
    registry.register(KvMetrics(Progress(scheduler), figures))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    """The sum of the samples of that name which have these labels."""
    wanted = labels.items()
    return sum(
        value for (of_name, has), value in samples.items() if of_name == name and wanted <= has
    )


def test_the_blocks_of_all_states_sum_up_to_the_pool(pool: BlockPool) -> None:
    owned = pool.allocate(5)
    pool.publish(owned[0], b"a")
    pool.publish(owned[1], b"b")
    pool.lease([owned[1]])
    pool.release(owned[:2])
    pool.lease_blank(4)
    told = scraped(pool, new_figures())
    for state, count in (("free", 11), ("owned", 3), ("leased", 5), ("cached", 1)):
        assert of(told, "tokenway_kv_blocks", state=state) == count
    assert of(told, "tokenway_kv_blocks") == of(told, "tokenway_kv_pool_blocks") == 20


def test_what_a_tier_did_is_told_under_its_name(pool: BlockPool) -> None:
    figures = new_figures()
    service = figures[Tier.SERVICE]
    service.hit(3, 3000)
    service.miss(CacheMiss.CHECKSUM, 2)
    service.wrote(4, 4000)
    service.skip(Skip.QUEUE_FULL, 5)
    told = scraped(pool, figures)
    for name, value in (
        ("hit_blocks", 3),
        ("read_bytes", 3000),
        ("miss_blocks", 2),
        ("written_blocks", 4),
        ("written_bytes", 4000),
        ("skipped_blocks", 5),
    ):
        assert of(told, f"tokenway_kv_{name}_total", tier="service") == value
        assert of(told, f"tokenway_kv_{name}_total") == value
    assert of(told, "tokenway_kv_miss_blocks_total", cause="checksum") == 2
    assert of(told, "tokenway_kv_skipped_blocks_total", cause="queue_full") == 5


def test_reading_times_fall_into_buckets_that_grow(pool: BlockPool) -> None:
    figures = new_figures()
    times_s = (0.0001, 0.001, 0.3, 60.0)
    for seconds in times_s:
        figures[Tier.PEER].read(seconds)
    told = scraped(pool, figures)
    bucket = "tokenway_kv_read_seconds_bucket"
    assert of(told, bucket, tier="peer", le="0.001") == 2
    assert of(told, bucket, tier="peer", le="0.25") == 2
    assert of(told, bucket, tier="peer", le="0.5") == 3
    assert of(told, bucket, tier="peer", le=str(READ_BUCKETS_S[-1])) == 3
    assert of(told, bucket, tier="peer", le="+Inf") == len(times_s)
    assert of(told, "tokenway_kv_read_seconds_count", tier="peer") == len(times_s)
    assert of(told, "tokenway_kv_read_seconds_sum", tier="peer") == pytest.approx(sum(times_s))
    assert of(told, "tokenway_kv_read_seconds_count") == len(times_s)


def test_every_label_has_all_its_values_from_the_start_and_no_other_ever(pool: BlockPool) -> None:
    before = scraped(pool, new_figures())
    figures = new_figures()
    for tier in Tier:
        for cause in CacheMiss:
            figures[tier].miss(cause, 1)
        for skip in Skip:
            figures[tier].skip(skip)
    assert scraped(pool, figures).keys() == before.keys()
    assert of(before, "tokenway_kv_miss_blocks_total") == 0
