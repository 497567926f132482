"""Thousands that wait do no harm: what is done for each does not grow with their number."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from services.router.admission.admission_rules import AdmissionRules
from services.router.demand import Demand, Lane
from services.shared.errors import Overloaded
from tests.router.bureau import Bureau, Visitor, demand

MANY = 5000
BOUND = 2048


class Calls:
    """Counts calls of functions, of Python and of C."""

    count = 0

    def __call__(self, _: FrameType, event: str, __: object) -> None:
        self.count += event in {"call", "c_call"}


@contextmanager
def counted() -> Iterator[Calls]:
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def of_one_tenant(_: int) -> Demand:
    return demand()


def of_many_tenants(number: int) -> Demand:
    return demand(f"tenant {number}")


def of_all_kinds(number: int) -> Demand:
    lane = Lane.LONG if number % 3 else Lane.SHORT
    return demand(f"tenant {number % 7}", 1 + number % 50, lane=lane, batch=number % 2 == 0)


def visit(bureau: Bureau, count: int, wanted: Callable[[int], Demand]) -> list[Visitor]:
    """Those that were taken; each has a deadline of its own."""
    taken = []
    for number in range(count):
        try:
            taken.append(bureau.enter(wanted(number), 1000 + number * 7 % 100))
        except Overloaded as error:
            assert error.retry_after_s  # noqa: PT017  # the rest is refused like this
    return taken


def filled(bureau: Bureau) -> list[Visitor]:
    """All places are taken, and it is known how fast they become free."""
    running = bureau.fill()
    first = [bureau.enter(demand(lane=lane)) for lane in Lane]
    for visitor in running[:2]:
        bureau.clock.pass_time(0.1)
        bureau.finish(visitor)
    bureau.went.clear()
    return running[2:] + first


def serve(bureau: Bureau, running: list[Visitor]) -> None:
    """Until nobody runs any more."""
    while running:
        bureau.begin(running[0])
        bureau.finish(running.pop(0))
        running += bureau.went
        bureau.went.clear()


@pytest.mark.parametrize("wanted", [of_one_tenant, of_many_tenants, of_all_kinds])
def test_of_5000_the_queue_keeps_its_bound_and_all_it_took_are_served(
    wanted: Callable[[int], Demand],
) -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=BOUND))
    running = filled(bureau)
    taken = visit(bureau, MANY, wanted)
    assert bureau.admission.waiting == BOUND
    displaced = [visitor for visitor in taken if visitor.refusal is not None]
    assert all(isinstance(visitor.refusal, Overloaded) for visitor in displaced)
    serve(bureau, running)
    assert sum(visitor.leg is not None for visitor in taken) == len(taken) - len(displaced) == BOUND
    assert bureau.admission.waiting == 0


@pytest.mark.parametrize("wanted", [of_one_tenant, of_many_tenants, of_all_kinds])
def test_work_for_each_hardly_grows_with_their_number(wanted: Callable[[int], Demand]) -> None:
    def work(count: int) -> float:
        bureau = Bureau(rules=AdmissionRules(max_waiting=count))
        running = filled(bureau)
        with counted() as calls:
            visit(bureau, 2 * count, wanted)
            serve(bureau, running)
        return calls.count / count

    assert work(1600) < 1.5 * work(100)


def test_pumping_does_nothing_while_nothing_waits() -> None:
    bureau = Bureau()
    bureau.fill()
    with counted() as calls:
        bureau.admission.pump()
    assert calls.count < 20


def test_waiting_ones_that_leave_are_gone_without_more_work_than_for_coming() -> None:
    bureau = Bureau()
    bureau.fill()
    with counted() as coming:
        visitors = visit(bureau, 1000, of_all_kinds)
    with counted() as leaving:
        for visitor in visitors:
            bureau.leave(visitor)
    assert bureau.admission.waiting == 0
    assert leaving.count < 2 * coming.count
