"""What holds in every world: after each step, and when faults have ended and time has passed."""

from __future__ import annotations

from services.engine.blocks import BlockPool
from services.engine.scheduler import Scheduler
from tests.simulation.engine import Host
from tests.simulation.front import Life
from tests.simulation.judge import Judge
from tests.simulation.legs import Counts


def check_router(life: Life, judge: Judge) -> None:
    """The router's own figures are those that can be counted on its wires."""
    legs = life.legs
    for figures in life.router.replicas():
        judge.saw(f"status {figures.status}")
        counts = figures.counts
        if min(counts.running, counts.outstanding_tokens, counts.pending_tokens) < 0:
            judge.broken("counts are not negative", f"{figures.name}: {counts}")
        if not legs.unsettled and counts != legs.at(figures.name):
            text = f"{figures.name}: {counts} are {legs.at(figures.name)}"
            judge.broken("counts are the truth", text)


def check_engine(host: Host, judge: Judge) -> None:
    """Each block is free, owned or cached, and the owners are the sequences."""
    if host.process is None:
        return
    scheduler = host.process.parts.steps.scheduler
    pool = scheduler.pool
    owned = _owned(scheduler)
    total = pool.free + len(owned) + pool.cached
    if total != pool.count:
        text = f"{pool.free} free, {len(owned)} owned, {pool.cached} cached of {pool.count}"
        judge.broken("blocks add up", f"{host.name}: {text}")
    check_owners(host.name, pool, owned, judge)


def check_owners(name: str, pool: BlockPool, owned: dict[int, int], judge: Judge) -> None:
    for block, owners in enumerate(pool._owners):
        if owners != owned.get(block, 0):
            text = f"{name}: block {block} has {owners} owners instead of {owned.get(block, 0)}"
            judge.broken("blocks add up", text)
    for address, block in pool._block_at.items():
        if pool._address_of[block] != address:
            judge.broken("blocks add up", f"{name}: block {block} is known by two addresses")


def check_rest(life: Life, judge: Judge) -> None:
    """Nothing is left of any generation in the router."""
    router, notes = life.router, life.notes
    if router.running or router.waiting:
        text = f"{router.running} run and {router.waiting} wait in the router"
        judge.broken("nothing is left", text)
    if notes.started != notes.ended.total():
        text = f"{notes.started} started, {dict(notes.ended)} ended"
        judge.broken("started = finished + cancelled + failed", text)
    nothing = Counts(0, 0, 0)
    for figures in router.replicas():
        if figures.counts != nothing:
            judge.broken("nothing is left", f"{figures.name}: {figures.counts}")
    if not life.legs.is_empty():
        judge.broken("nothing is left", "a generation is at a replica")


def check_idle(host: Host, judge: Judge) -> None:
    """Nothing is left of any generation in an engine."""
    if host.process is None:
        judge.broken("nothing is left", f"{host.name} is dead")
        return
    engine, steps = host.process.parts.engine, host.process.parts.steps
    if not steps.scheduler.idle or engine._live:
        text = f"{host.name}: {len(engine._live)} live, {len(list(steps.scheduler))} sequences"
        judge.broken("nothing is left", text)
    pool = steps.scheduler.pool
    if pool.free + pool.cached != pool.count:
        judge.broken("nothing is left", f"{host.name}: blocks are owned")


def _owned(scheduler: Scheduler) -> dict[int, int]:
    owned: dict[int, int] = {}
    for sequence in scheduler:
        for block in sequence.blocks:
            owned[block] = owned.get(block, 0) + 1
    return owned
