"""What a fill leases, and when its sequence enters."""

from __future__ import annotations

from services.engine.kv.fill import Fill
from services.engine.kv.fill_desk import PORTION, FillDesk
from services.engine.kv.tier import Tier
from services.shared.stream.events import CachedTokens, CacheMiss
from tests.engine.harness import Harness, simulated
from tests.engine.kv.test_filling import generation


def fill_for(harness: Harness, number: int = 0, prompt: int = 42) -> Fill:
    sequence = harness.admission.admit(generation(number, prompt))
    return Fill(sequence, sequence.usable_addresses(harness.parts.pool.size))


def entered(harness: Harness) -> int:
    return len(harness.loop.scheduler.waiting)


def test_running_sequences_keep_room_for_a_block_each() -> None:
    harness = Harness(simulated(blocks=20))
    for number in (10, 20, 30):
        harness.add(generation(number, prompt=10))
    harness.loop.step()
    pool, desk = harness.parts.pool, FillDesk(harness.loop)
    fill = fill_for(harness)
    assert desk.look(fill) is None
    assert len(fill.blanks) == 20 - 3 * 3 - 3
    assert pool.available == len(harness.loop.scheduler.running)
    pool.audit()
    desk.settle(fill)
    assert pool.leased == 0
    assert entered(harness) == 1


def test_few_others_give_way_between_two_steps() -> None:
    harness = Harness(simulated(blocks=100))
    desk, fill = FillDesk(harness.loop), fill_for(harness, prompt=401)
    for leased in (PORTION, 2 * PORTION, 3 * PORTION, 100):
        desk.extend(fill) if fill.blanks else desk.look(fill)
        assert harness.parts.pool.leased == leased
    desk.settle(fill)
    assert harness.parts.pool.free == 100


def test_what_is_found_stays_and_only_the_rest_is_blank() -> None:
    harness = Harness(simulated())
    harness.outputs([generation(prompt=22)])
    desk, fill = FillDesk(harness.loop), fill_for(harness)
    desk.look(fill)
    assert (len(fill.found), len(fill.blanks)) == (5, 5)
    assert harness.parts.pool.match(fill.addresses) == fill.found
    assert harness.parts.pool.leased == 10
    assert fill.missing == fill.addresses[5:]


def test_nothing_missing_means_in() -> None:
    harness = Harness(simulated())
    harness.outputs([generation()])
    desk, fill = FillDesk(harness.loop), fill_for(harness)
    assert desk.look(fill) is None
    assert harness.parts.pool.leased == 0
    assert entered(harness) == 1
    desk.settle(fill)
    assert entered(harness) == 1


def test_no_room_at_all_means_in_and_is_told() -> None:
    harness = Harness(simulated(blocks=14))
    held = harness.parts.pool.lease_blank(14)
    desk, fill = FillDesk(harness.loop), fill_for(harness)
    desk.look(fill)
    assert entered(harness) == 1
    assert fill.sequence.cache_miss is CacheMiss.NO_ROOM
    harness.parts.pool.end_lease(held)


def test_what_came_is_found_and_the_rest_is_free_again() -> None:
    harness = Harness(simulated())
    desk, fill = FillDesk(harness.loop), fill_for(harness)
    desk.look(fill)
    fill.tiers = [Tier.HOST] * 3
    desk.settle(fill)
    pool = harness.parts.pool
    assert (pool.cached, pool.leased, pool.free) == (3, 0, 61)
    assert len(pool.match(fill.addresses)) == 3
    harness.loop.step()
    assert fill.sequence.cached_tokens == CachedTokens(host=12)


def test_what_came_for_a_cancelled_one_is_kept_and_it_stays_out() -> None:
    harness = Harness(simulated())
    desk, fill = FillDesk(harness.loop), fill_for(harness)
    desk.look(fill)
    fill.tiers, fill.cancelled = [Tier.PEER] * 3, True
    desk.settle(fill)
    assert harness.parts.pool.cached == 3
    assert entered(harness) == 0


def test_one_fill_at_a_time_brings_a_block() -> None:
    harness = Harness(simulated())
    desk, first, second = FillDesk(harness.loop), fill_for(harness), fill_for(harness, prompt=30)
    other = fill_for(harness, 50)
    assert desk.look(first) is None
    assert desk.look(second) is first
    assert not second.blanks
    assert desk.look(other) is None
    desk.settle(first)
    assert desk.look(second) is None
    desk.settle(second)
    desk.settle(other)
    assert harness.parts.pool.leased == 0


def test_blocks_that_were_computed_meanwhile_are_not_there_twice() -> None:
    harness = Harness(simulated())
    desk, fill = FillDesk(harness.loop), fill_for(harness)
    desk.look(fill)
    harness.outputs([generation()])
    fill.tiers = [Tier.PEER] * 10
    desk.settle(fill)
    pool = harness.parts.pool
    pool.audit()
    assert (pool.cached, pool.leased) == (len(pool.watch()), 0)
