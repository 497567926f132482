"""Leases: what is read stays as it is until the copy is done, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from services.engine.kv.leases import Lease, LeaseEnded, Leases
from tests.engine.harness import Harness, simulated
from tests.engine.kv.lender import prompt


class Let:
    """Counts how often the blocks were let go."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def test_an_idle_lease_lets_its_blocks_go_when_it_ends() -> None:
    let = Let()
    lease = Lease([1, 2], let)
    assert lease.end() is True
    assert let.times == 1


def test_a_lease_ends_once() -> None:
    let = Let()
    lease = Lease([1], let)
    assert [lease.end(), lease.end()] == [True, False]
    assert let.times == 1


def test_blocks_of_an_ended_lease_are_let_go_by_the_last_reader() -> None:
    let = Let()
    lease = Lease([1], let)
    with lease.reading():
        with lease.reading():
            assert lease.end() is True
            assert lease.end() is False
        assert let.times == 0
    assert let.times == 1


def test_a_reader_of_a_lease_that_holds_lets_nothing_go() -> None:
    let = Let()
    lease = Lease([1], let)
    with lease.reading():
        pass
    assert let.times == 0
    assert lease.end() is True


def test_no_read_begins_after_the_end() -> None:
    lease = Lease([1], Let())
    lease.end()
    with pytest.raises(LeaseEnded), lease.reading():
        raise AssertionError


def test_a_read_that_fails_is_over() -> None:
    let = Let()
    lease = Lease([1], let)
    with suppress(ZeroDivisionError), lease.reading():
        lease.end()
        raise ZeroDivisionError
    assert let.times == 1


def filled(blocks: int) -> tuple[Harness, list[int]]:
    """An engine whose whole pool is cached blocks of one prompt, in their order."""
    harness = Harness(simulated(blocks=blocks))
    key = harness.add(prompt(0, blocks))
    sequence = next(iter(harness.loop.scheduler))
    while not harness.loop.scheduler.idle:
        harness.loop.step()
    assert harness.end(key)
    pool = harness.parts.pool
    assert pool.cached == blocks
    return harness, pool.match(sequence.addresses)


def test_a_granted_lease_is_of_the_pool_until_a_command_ends_it() -> None:
    harness, found = filled(8)
    commands: list[Callable[[], None]] = []
    lease = Leases(harness.loop.scheduler, commands.append).grant(found)
    assert lease is not None
    pool = harness.parts.pool
    assert (lease.blocks, pool.leased) == (found, 8)
    lease.end()
    assert pool.leased == 8
    (command,) = commands
    command()
    assert (pool.leased, pool.cached) == (0, 8)
    pool.audit()


def test_a_lease_leaves_running_sequences_room_for_a_block_each() -> None:
    harness, _ = filled(8)
    harness.add(prompt(1, 2, output=9))
    harness.loop.step()
    pool = harness.parts.pool
    known = pool.match(next(iter(harness.loop.scheduler)).addresses)
    cached = [block for block in range(8) if block in pool._cached]
    lease = Leases(harness.loop.scheduler, harness.loop.command).grant(cached)
    assert lease is not None
    assert lease.blocks == cached[:-1]
    assert pool.available == len(harness.loop.scheduler.running) == 1
    pool.audit()
    owned = Leases(harness.loop.scheduler, harness.loop.command).grant(known)
    assert owned is not None
    assert owned.blocks == known, "what is owned takes no room"
    pool.audit()


def test_nothing_found_is_no_lease() -> None:
    harness, _ = filled(4)
    assert Leases(harness.loop.scheduler, harness.loop.command).grant([]) is None
