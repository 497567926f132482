"""What is pinned gives way last; neither pins nor a tenant take the pool from others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.engine.blocks import BlockPool
from services.engine.eviction import PINNED_SHARE, TENANTS_SHARE, EvictionOrder
from services.shared.stream.generation import CacheControl, Generation, QualityOfService, Stopping
from tests.engine.harness import Harness, simulated


def order(blocks: int, pins: int) -> EvictionOrder[int]:
    order: EvictionOrder[int] = EvictionOrder(pins * PINNED_SHARE)
    for block in range(blocks):
        order.add(block)
    return order


def taken(order: EvictionOrder[int]) -> list[int]:
    return [order.take() for _ in range(len(order))]


def test_what_was_used_longest_ago_goes_first_and_what_is_pinned_last() -> None:
    blocks = order(4, pins=2)
    blocks.pin(0)
    assert taken(blocks) == [1, 2, 3, 0]


def test_of_too_many_pins_the_one_used_longest_ago_ends() -> None:
    blocks = order(4, pins=2)
    for block in (0, 1, 0, 2):
        blocks.pin(block)
    assert [block for block in range(4) if blocks.is_pinned(block)] == [0, 2]
    assert taken(blocks) == [3, 1, 0, 2]


def test_a_block_in_use_may_be_pinned() -> None:
    blocks = order(2, pins=1)
    blocks.remove(0)
    blocks.pin(0)
    blocks.add(0)
    assert taken(blocks) == [1, 0]


def test_a_pool_too_small_for_pins_has_none() -> None:
    blocks = order(3, pins=0)
    blocks.pin(0)
    assert not blocks.is_pinned(0)
    assert sorted(taken(blocks)) == [0, 1, 2]


@given(st.lists(st.tuples(st.sampled_from(["pin", "use", "give", "take"]), st.integers(0, 7))))
def test_each_cached_block_is_there_once_and_few_are_pinned(steps: list[tuple[str, int]]) -> None:
    blocks, cached = order(8, pins=2), set(range(8))
    for step, block in steps:
        if step == "pin":
            blocks.pin(block)
        elif step == "use" and block in cached:
            blocks.remove(block)
            cached.remove(block)
        elif step == "give" and block not in cached:
            blocks.add(block)
            cached.add(block)
        elif step == "take" and cached:
            gone = blocks.take()
            blocks.unpin(gone)
            cached.remove(gone)
        assert set(blocks) == cached
        assert len(blocks) == len(cached)
        assert sum(map(blocks.is_pinned, range(8))) <= 2


TENANTS = "abc"


@given(
    st.lists(st.tuples(st.sampled_from(["add", "add", "use", "pin", "take"]), st.integers(0, 63)))
)
def test_what_a_tenant_has_within_its_share_gives_way_when_nothing_else_is_left(
    steps: list[tuple[str, int]],
) -> None:
    """And of what is beyond a share, the block used longest ago: a model of plain lists."""
    blocks: EvictionOrder[int] = EvictionOrder(16)
    cached: list[int] = []
    for step, block in steps:
        tenant = TENANTS[block % 3]
        if step == "add" and block not in cached:
            blocks.add(block, tenant)
            cached.append(block)
        elif step == "use" and block in cached:
            assert blocks.remove(block) == tenant
            blocks.add(block, tenant)
            cached.append(cached.pop(cached.index(block)))
        elif step == "pin" and block == 0:
            blocks.pin(block)
        elif step == "take" and cached:
            plain = [block for block in cached if not blocks.is_pinned(block)] or cached
            kept = 16 // TENANTS_SHARE // len({block % 3 for block in plain})
            many = [block for block in plain if sum(b % 3 == block % 3 for b in plain) > kept]
            assert next(iter(blocks)) == (many or plain)[0] == blocks.take()
            cached.remove((many or plain)[0])
            blocks.unpin((many or plain)[0])
    assert set(blocks) == set(cached)


def test_only_what_can_be_found_is_pinned_in_a_pool_and_only_until_it_is_gone() -> None:
    pool = BlockPool(8, 4)
    nameless, named, other = pool.allocate(3)
    pool.publish(named, b"a")
    pool.publish(other, b"b")
    pool.pin(nameless)
    pool.pin(named)
    assert [pool.is_pinned(block) for block in (nameless, named)] == [False, True]
    gone: list[tuple[bytes, bool]] = []
    pool.on_evict = lambda block, address: gone.append((address, pool.is_pinned(block)))
    pool.release([nameless, named, other])
    pool.allocate(8)
    assert gone == [(b"b", False), (b"a", True)]
    assert not pool.is_pinned(named)
    pool.audit()


def prompt(
    number: int, tokens: int, pinned: int = 0, *, writes: bool = True, tenant: str | None = None
) -> Generation:
    return Generation(
        request_id=str(number),
        prompt_ids=[10 + number] * tokens,
        stopping=Stopping(max_tokens=1),
        cache=CacheControl(pinned_tokens=pinned, write=writes),
        quality_of_service=QualityOfService(tenant=tenant),
    )


def test_the_head_of_a_prompt_outlives_others_where_its_caller_says_so() -> None:
    harness = Harness(simulated(blocks=16, size=4))
    harness.outputs([prompt(0, 8, pinned=9), prompt(1, 8)])
    for number in range(2, 8):
        harness.outputs([prompt(number, 16)])
    pool = harness.loop.scheduler.pool
    pool.audit()
    first, second = (
        harness.admission.admit(prompt(number, 8)).full_addresses(4) for number in (0, 1)
    )
    assert len(pool.match(first)) == 2
    assert pool.match(second) == []


def test_a_caller_that_pins_all_it_has_takes_a_quarter() -> None:
    harness = Harness(simulated(blocks=16, size=4))
    for number in range(8):
        harness.outputs([prompt(number, 12, pinned=1000)])
    pool = harness.loop.scheduler.pool
    pool.audit()
    assert sum(map(pool.is_pinned, range(16))) == 16 // PINNED_SHARE
