"""The block pool's bookkeeping."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.engine.blocks import BlockPool, OutOfBlocks

A, B, C = b"a", b"b", b"c"


def test_blocks_are_given_once_until_released() -> None:
    pool = BlockPool(3, 4)
    blocks = pool.allocate(3)
    assert sorted(blocks) == [0, 1, 2]
    with pytest.raises(OutOfBlocks):
        pool.allocate(1)
    pool.release(blocks)
    assert pool.free == 3


def test_a_failed_allocation_takes_nothing() -> None:
    pool = BlockPool(2, 4)
    with pytest.raises(OutOfBlocks):
        pool.allocate(3)
    assert pool.free == 2


def test_shared_block_is_cached_only_with_its_last_owner() -> None:
    pool = BlockPool(2, 4)
    blocks = pool.allocate(1)
    pool.publish(blocks[0], A)
    pool.own(pool.match([A]))
    pool.release(blocks)
    assert pool.cached == 0
    pool.release(blocks)
    assert (pool.cached, pool.free) == (1, 1)


def test_a_match_ends_at_the_first_unknown_address() -> None:
    pool = BlockPool(3, 4)
    blocks = pool.allocate(2)
    pool.publish(blocks[0], A)
    pool.publish(blocks[1], C)
    assert pool.match([A, B, C]) == [blocks[0]]


def test_the_prefix_used_longest_ago_goes_first_and_its_end_before_its_beginning() -> None:
    pool = BlockPool(3, 4)
    old = pool.allocate(2)
    pool.publish(old[0], A)
    pool.publish(old[1], B)
    pool.release(old)
    young = pool.allocate(1)
    pool.publish(young[0], C)
    pool.release(young)
    pool.allocate(1)
    assert pool.match([A, B]) == [old[0]]
    assert pool.match([C]) == young


def test_equal_content_is_known_once() -> None:
    pool = BlockPool(2, 4)
    first, second = pool.allocate(2)
    pool.publish(first, A)
    pool.publish(second, A)
    pool.release([first, second])
    assert (pool.cached, pool.free) == (1, 1)


def test_a_block_keeps_its_first_address() -> None:
    pool = BlockPool(2, 4)
    blocks = pool.allocate(1)
    pool.publish(blocks[0], A)
    pool.publish(blocks[0], B)
    pool.release(blocks)
    pool.flush()
    assert pool.match([A]) == pool.match([B]) == []


def test_flush_frees_what_nobody_owns() -> None:
    pool = BlockPool(3, 4)
    kept, dropped = pool.allocate(2)
    pool.publish(kept, A)
    pool.publish(dropped, B)
    pool.release([dropped])
    assert pool.flush() == 1
    assert pool.match([B]) == []
    assert pool.match([A]) == [kept]


def test_nothing_is_recorded_while_nobody_watches() -> None:
    pool = BlockPool(2, 4)
    pool.publish(pool.allocate(1)[0], A)
    assert pool.take_changes() is None
    assert pool.watch() == [A]
    assert pool.take_changes() is None
    pool.unwatch()
    pool.publish(pool.allocate(1)[0], B)
    assert pool.take_changes() is None


def test_what_came_and_went_between_two_takes_is_not_told() -> None:
    pool = BlockPool(2, 4)
    pool.watch()
    blocks = pool.allocate(2)
    pool.publish(blocks[0], A)
    pool.publish(blocks[1], B)
    changes = pool.take_changes()
    assert changes is not None
    assert (list(changes.stored), list(changes.dropped)) == ([A, B], [])
    pool.release(blocks)
    pool.flush()
    pool.publish(pool.allocate(1)[0], A)
    (short,) = pool.allocate(1)
    pool.publish(short, C)
    pool.release([short])
    pool.flush()
    changes = pool.take_changes()
    assert changes is not None
    assert (list(changes.stored), list(changes.dropped)) == ([], [B])


class Pool(RuleBasedStateMachine):
    """Any use keeps free + owned + cached == count, and no block has two unrelated owners.

    What is told of changes, whenever it is taken, leads to the addresses that can be found.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(6, 4)
        self.owned: list[list[int]] = []
        self.names = 0
        self.told = set(self.pool.watch())

    @rule(number=st.integers(0, 7))
    def allocate(self, number: int) -> None:
        try:
            blocks = self.pool.allocate(number)
        except OutOfBlocks:
            assert number > self.pool.available
            return
        taken = {block for group in self.owned for block in group}
        assert not taken & set(blocks)
        self.owned.append(blocks)

    @rule(pick=st.integers(0, 20))
    def publish(self, pick: int) -> None:
        if self.owned and (group := self.owned[pick % len(self.owned)]):
            self.names += 1
            self.pool.publish(group[0], b"%d" % (self.names // 2))

    @rule(name=st.integers(0, 20))
    def share(self, name: int) -> None:
        blocks = self.pool.match([b"%d" % name])
        self.pool.own(blocks)
        self.owned.append(blocks)

    @rule(pick=st.integers(0, 20))
    def release(self, pick: int) -> None:
        if self.owned:
            self.pool.release(self.owned.pop(pick % len(self.owned)))

    @rule()
    def flush(self) -> None:
        self.pool.flush()

    @rule(goes=st.booleans())
    def watch_again(self, goes: bool) -> None:
        if goes:
            self.pool.unwatch()
        self.told = set(self.pool.watch())

    @rule()
    def take_changes(self) -> None:
        changes = self.pool.take_changes()
        if changes is not None:
            assert not self.told & set(changes.stored)
            assert self.told >= set(changes.dropped)
            self.told = self.told - set(changes.dropped) | set(changes.stored)
        assert self.told == set(self.pool._block_at)

    @invariant()
    def the_sum_holds(self) -> None:
        owned = {block for group in self.owned for block in group}
        assert self.pool.free + self.pool.cached + len(owned) == self.pool.count


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=50, stateful_step_count=30)
