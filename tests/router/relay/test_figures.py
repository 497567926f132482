"""What a router counts: where its generations are, how they ended, and where they went."""

from __future__ import annotations

import pytest

from services.router.balancing.balancer import For
from services.router.demand import Lane
from services.router.fleet.room import RoomRules
from services.router.relay.figures import End, LegCause, PrefillEnd
from services.router.status import Role
from services.shared.addresses import next_address, root_address
from services.shared.errors import Code, Overloaded, ServiceError
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import CancelReason
from tests.recorder import Recorder, submission
from tests.router.identity import IDENTITY
from tests.router.world import BLOCK_TOKENS, World

LONG = tuple(range(4 * BLOCK_TOKENS + 1))
ONE_EACH = RoomRules(slots=1, window=dict.fromkeys(Lane, 3))


def counts(world: World) -> dict[str, int]:
    """What is not zero; all that came are somewhere."""
    relay, figures = world.relay, world.relay.figures
    placed = relay.placed()
    assert figures.started == relay.running + sum(figures.ended.values())
    for end in (End.FAILED, End.REFUSED):
        told = (count for (of, _), count in figures.errors.items() if of is end)
        assert figures.ended[end] == sum(told)
    assert figures.legs[LegCause.NEW] == figures.queue_seconds.count
    everywhere: dict[str, int] = {"running": placed, "waiting": relay.running - placed}
    everywhere |= {end.value: count for end, count in figures.ended.items()}
    return {where: count for where, count in everywhere.items() if count}


def legs(world: World) -> dict[LegCause, int]:
    return {cause: count for cause, count in world.relay.figures.legs.items() if count}


def test_generations_run_wait_and_end() -> None:
    world = World("a", room=ONE_EACH)
    world.relay.submit(submission("x", Recorder()))
    cancel = world.relay.submit(submission("y", Recorder()))
    world.relay.submit(submission("z", Recorder()))
    assert counts(world) == {"running": 1, "waiting": 2}
    cancel(CancelReason.CLIENT_GONE)
    world.clock.pass_time(2)
    world.play()
    assert counts(world) == {"finished": 2, "cancelled": 1}
    assert legs(world) == {LegCause.NEW: 2}
    assert world.relay.figures.queue_seconds.total == pytest.approx(2)
    assert world.relay.figures.relayed_tokens == 8


def test_a_generation_goes_on_elsewhere_and_fails_where_nobody_can() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder))
    world.play(2)
    world.die("a")
    world.die("b")
    assert counts(world) == {"waiting": 1}
    world.clock.pass_time(31)
    assert counts(world) == {"failed": 1}
    figures = world.relay.figures
    assert legs(world) == {LegCause.NEW: 1, LegCause.FAILED: 1}
    assert figures.continuations == 1
    assert figures.setbacks[Code.UNAVAILABLE] == 2
    assert figures.errors[End.FAILED, Code.UNAVAILABLE] == 1


def test_one_that_is_full_and_one_that_drains() -> None:
    world = World("a", "b")
    world.sources["a"].refuse = Overloaded("too many wait")
    world.relay.submit(submission("x", Recorder()))
    world.clock.pass_time(0)
    world.sources["a"].refuse = None
    world.play(2)
    world.fleet.drain("b")
    world.fleet.sweep()
    world.play()
    assert counts(world) == {"finished": 1}
    assert legs(world) == {LegCause.NEW: 1, LegCause.FULL: 1, LegCause.MOVED: 1}
    assert world.relay.figures.setbacks[Code.RESOURCE_EXHAUSTED] == 1
    assert world.relay.figures.continuations == 1


async def test_what_is_not_taken_is_refused() -> None:
    world = World("a", room=ONE_EACH, max_waiting=1)
    for name in "xy":
        world.relay.submit(submission(name, Recorder()))
    with pytest.raises(ServiceError):
        world.relay.submit(submission("z", Recorder()))
    world.play()
    await world.relay.drain()
    with pytest.raises(ServiceError):
        world.relay.submit(submission("late", Recorder()))
    assert counts(world) == {"finished": 2, "refused": 2}
    errors = world.relay.figures.errors
    assert errors[End.REFUSED, Code.RESOURCE_EXHAUSTED] == 1
    assert errors[End.REFUSED, Code.UNAVAILABLE] == 1
    assert sum(world.admission.refusals.values()) == 1


@pytest.mark.parametrize("end", PrefillEnd)
def test_a_prefill_ends_in_one_of_three_ways(end: PrefillEnd) -> None:
    world = World("d", "p", roles={"d": Role.DECODE, "p": Role.PREFILL})
    cancel = world.relay.submit(submission("x", Recorder(), prompt_ids=LONG))
    match end:
        case PrefillEnd.FINISHED:
            for _ in range(5):
                world.sources["p"].step()
        case PrefillEnd.FAILED:
            world.lose("p", "x")
        case PrefillEnd.STOPPED:
            cancel(CancelReason.CLIENT_GONE)
    prefills = world.relay.figures.prefills
    assert {name: count for name, count in prefills.items() if count} == {end: 1}
    assert legs(world) == {LegCause.NEW: 1}


def test_a_decision_is_counted_by_what_spoke_for_the_replica() -> None:
    world = World("d", "p", roles={"d": Role.DECODE, "p": Role.PREFILL})
    world.relay.submit(submission("x", Recorder(), prompt_ids=LONG))
    world.relay.submit(submission("y", Recorder()))
    tell_blocks(world, "d", LONG[: 2 * BLOCK_TOKENS])
    world.relay.submit(submission("z", Recorder(), prompt_ids=LONG[: 2 * BLOCK_TOKENS + 1]))
    decisions = {reason: count for reason, count in world.balancer.decisions.items() if count}
    assert decisions == {For.PREFILL: 1, For.LOAD: 1, For.CACHED: 1}


def tell_blocks(world: World, name: str, prompt: tuple[int, ...]) -> None:
    addresses = [root_address(IDENTITY.version, "", b"")]
    for start in range(0, len(prompt), BLOCK_TOKENS):
        addresses.append(next_address(addresses[-1], prompt[start : start + BLOCK_TOKENS]))
    world.fleet.tell_blocks(name, BlockEvents(sequence=1, snapshot=True, stored=addresses[1:]))
