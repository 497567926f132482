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


def test_a_leased_block_is_neither_found_twice_nor_given_away() -> None:
    pool = BlockPool(2, 4)
    (block,) = pool.lease_blank(1)
    assert (pool.leased, pool.available) == (1, 1)
    pool.publish(block, A)
    pool.own(pool.match([A]))
    assert (pool.owned, pool.leased) == (1, 0)
    pool.release([block])
    assert (pool.owned, pool.leased, pool.cached) == (0, 1, 0)
    pool.end_lease([block])
    assert pool.cached == 1
    pool.audit()


def test_a_blank_that_was_not_filled_is_free_again() -> None:
    pool = BlockPool(2, 4)
    pool.end_lease(pool.lease_blank(2))
    assert pool.free == 2


def test_blanks_are_as_hard_to_get_as_blocks() -> None:
    pool = BlockPool(2, 4)
    with pytest.raises(OutOfBlocks):
        pool.lease_blank(3)
    assert pool.free == 2


def test_a_pool_tells_that_its_books_are_wrong() -> None:
    pool = BlockPool(2, 4)
    (block,) = pool.allocate(1)
    pool.audit()
    pool.release([block])
    pool.release([block])
    with pytest.raises(AssertionError, match="the pool's books are wrong"):
        pool.audit()


class Pool(RuleBasedStateMachine):
    """Any use keeps each block in one state, and no block has two unrelated users.

    What is told of changes, whenever it is taken, leads to the addresses that can be found. What a
    block holds is what its address says, until nobody uses it and another takes it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(6, 4)
        self.pool.on_evict = self.evicted
        self.owned: list[list[int]] = []
        self.leased: list[list[int]] = []
        self.holds: dict[int, bytes] = {}
        self.names = 0
        self.told = set(self.pool.watch())

    @property
    def used(self) -> set[int]:
        return {block for group in (*self.owned, *self.leased) for block in group}

    def evicted(self, block: int, address: bytes) -> None:
        assert self.holds[block] == address
        assert block not in self.used

    def take(self, blocks: list[int]) -> list[int]:
        assert not self.used & set(blocks)
        for block in blocks:
            self.holds.pop(block, None)
        return blocks

    @rule(number=st.integers(0, 7), blank=st.booleans())
    def take_new(self, number: int, blank: bool) -> None:
        try:
            blocks = (self.pool.lease_blank if blank else self.pool.allocate)(number)
        except OutOfBlocks:
            assert number > self.pool.available
        else:
            (self.leased if blank else self.owned).append(self.take(blocks))

    @rule(pick=st.integers(0, 20), end=st.booleans())
    def publish(self, pick: int, end: bool) -> None:
        groups = [group for group in (*self.owned, *self.leased) if group]
        if groups:
            self.names += 1
            block = groups[pick % len(groups)][-1 if end else 0]
            name = self.holds.setdefault(block, b"%d" % (self.names // 2))
            self.pool.publish(block, name, "ab"[pick % 2])

    @rule(pick=st.integers(0, 20))
    def pin(self, pick: int) -> None:
        self.pool.pin(pick % self.pool.count)

    @rule(name=st.integers(0, 20), lease=st.booleans())
    def share(self, name: int, lease: bool) -> None:
        blocks = self.pool.match([b"%d" % name])
        assert all(self.holds[block] == b"%d" % name for block in blocks)
        (self.pool.lease if lease else self.pool.own)(blocks)
        (self.leased if lease else self.owned).append(blocks)

    @rule(pick=st.integers(0, 20))
    def lease_what_is_owned(self, pick: int) -> None:
        if self.owned:
            blocks = self.owned[pick % len(self.owned)]
            self.pool.lease(blocks)
            self.leased.append(blocks)

    @rule(pick=st.integers(0, 20), lease=st.booleans())
    def let_go(self, pick: int, lease: bool) -> None:
        groups = self.leased if lease else self.owned
        if groups:
            (self.pool.end_lease if lease else self.pool.release)(groups.pop(pick % len(groups)))

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
    def the_books_are_right(self) -> None:
        owned = {block for group in self.owned for block in group}
        leased = {block for group in self.leased for block in group}
        assert (self.pool.owned, self.pool.leased) == (len(owned), len(leased - owned))
        assert all(self.holds[block] == at for at, block in self.pool._block_at.items())
        self.pool.audit()


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=50, stateful_step_count=30)
