"""Who gets how much while everybody wants more than there is."""

from __future__ import annotations

import pytest

from services.router.admission.fair_queue import PER_BATCH_TOKEN
from services.router.demand import Lane
from tests.router.crowd import Crowd, Source

SEEDS = range(5)
TOKENS = 60_000


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_tenants_get_equal_tokens_whatever_the_size_of_their_prompts(seed: int) -> None:
    sources = [Source("small", most=20), Source("large", most=500), Source("mixed", Lane.LONG)]
    crowd = Crowd(seed, sources, {})
    crowd.play(TOKENS)
    for tokens in crowd.tokens().values():
        assert tokens == pytest.approx(TOKENS / 3, rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_follow_weights(seed: int) -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 5.0}
    crowd = Crowd(seed, [Source("a"), Source("b", most=300), Source("c", most=30)], weights)
    crowd.play(TOKENS)
    for source, tokens in crowd.tokens().items():
        assert tokens == pytest.approx(TOKENS * weights[source.tenant] / 8, rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tenant_gains_nothing_by_using_both_lanes_which_share_its_tokens(seed: int) -> None:
    both = [Source("both"), Source("both", Lane.LONG, most=400)]
    crowd = Crowd(seed, [*both, Source("short")], {})
    crowd.play(TOKENS)
    tokens = crowd.tokens()
    assert tokens[Source("short")] == pytest.approx(TOKENS / 2, rel=0.1)
    for source in both:
        assert tokens[source] == pytest.approx(TOKENS / 4, rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_class_tenant_or_lane_starves(seed: int) -> None:
    tenants, most = ("a", "b", "c"), 200
    sources = [
        Source(tenant, lane, batch, most)
        for tenant in tenants
        for lane in Lane
        for batch in (False, True)
    ]
    crowd = Crowd(seed, sources, {})
    crowd.play(TOKENS * 4)
    turn = len(tenants) * len(Lane) * (most + 10)  # each has had one of the largest
    for source in sources:
        share = 1 + PER_BATCH_TOKEN if source.batch else (1 + PER_BATCH_TOKEN) / PER_BATCH_TOKEN
        assert crowd.longest_wait(source) <= 2 * turn * share
    batch = sum(tokens for source, tokens in crowd.tokens().items() if source.batch)
    assert batch == pytest.approx(TOKENS * 4 / (1 + PER_BATCH_TOKEN), rel=0.1)


def test_having_been_idle_gives_no_credit() -> None:
    crowd = Crowd(0, [Source("old")], {})
    crowd.play(TOKENS)
    crowd.went.clear()
    crowd.sources = [*crowd.sources, Source("new")]
    crowd.refill(Source("new"))
    crowd.play(TOKENS // 4)
    assert crowd.tokens()[Source("new")] == pytest.approx(TOKENS / 8, rel=0.1)
