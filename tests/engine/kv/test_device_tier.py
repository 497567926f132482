"""What the pool has and has not got of what prompts need, counted once each."""

from __future__ import annotations

from services.engine.kv.device_tier import DeviceTier
from services.engine.kv.figures import TierFigures
from services.engine.kv.keepers import Keepers
from services.engine.kv.tier import Tier
from services.engine.sequence import Sequence
from services.shared.stream.events import CacheMiss
from tests.engine.harness import Harness, simulated
from tests.engine.kv.test_filling import generation


def tier(remembered: int = 100) -> tuple[DeviceTier, TierFigures]:
    figures = TierFigures()
    return DeviceTier(figures, 4, remembered), figures


def sequence(*, read: bool = True) -> Sequence:
    """One that could find ten blocks."""
    return Harness(simulated()).admission.admit(generation(read=read))


def test_what_was_fetched_is_a_miss_of_the_pool() -> None:
    device, figures = tier()
    one = sequence()
    one.fetched = dict.fromkeys(one.usable_addresses(4)[3:7], Tier.PEER)
    device.placed(one, 7)
    assert figures.hit_blocks == 3
    assert figures.misses == {CacheMiss.ABSENT: 7}


def test_what_gave_way_is_remembered_for_a_while() -> None:
    device, figures = tier(remembered=3)
    one = sequence()
    for address in one.usable_addresses(4):
        device.evicted(address)
    device.placed(one, 6)
    assert figures.misses == {CacheMiss.ABSENT: 1, CacheMiss.EVICTED: 3}
    assert one.cache_miss is CacheMiss.ABSENT


def test_why_a_block_did_not_come_stands_until_it_is_found() -> None:
    device, _ = tier()
    one, other = sequence(), sequence()
    one.cache_miss = other.cache_miss = CacheMiss.TIMEOUT
    device.placed(one, 9)
    device.placed(other, 10)
    assert one.cache_miss is CacheMiss.TIMEOUT
    assert other.cache_miss is None


def test_a_sequence_counts_once_and_not_if_it_may_find_nothing() -> None:
    device, figures = tier()
    again, unread = sequence(), sequence(read=False)
    again.preemptions = 1
    device.placed(again, 10)
    device.placed(unread, 0)
    assert figures.hit_blocks == 0
    assert not figures.misses


def test_all_keepers_hear_of_everything() -> None:
    """Counting twice is what two of the same do."""
    device, figures = tier()
    keepers = Keepers(device, device)
    keepers.placed(sequence(), 10)
    keepers.filled(sequence(), range(3))
    assert figures.hit_blocks == 20
