"""What holds of every engine, after each step and when nothing is asked of it any more."""

from __future__ import annotations

from tests.simulation.engine_host import EngineHost
from tests.simulation.judge import Judge


def check_blocks(host: EngineHost, judge: Judge) -> None:
    """Each block is free, owned, leased or cached, and the owners are the sequences."""
    if host.process is None:
        return
    scheduler = host.process.parts.steps.scheduler
    pool = scheduler.pool
    owners = [0] * pool.count
    for sequence in scheduler:
        for block in sequence.blocks:
            owners[block] += 1
        if sequence.preemptions:
            judge.saw("a preemption")
    _check_sums(host, judge, pool.count - owners.count(0))
    if owners != pool._owners:
        text = f"owners are {pool._owners} instead of {owners}"
        judge.broken("blocks add up", f"{host.name}: {text}")
    known = pool.count - pool._address_of.count(None)
    if known != len(pool._block_at):
        text = f"{known} blocks have an address, {len(pool._block_at)} can be found"
        judge.broken("blocks add up", f"{host.name}: {text}")


def _check_sums(host: EngineHost, judge: Judge, owned: int) -> None:
    if host.process is None:
        return
    pool = host.process.parts.steps.scheduler.pool
    if pool.free + owned + pool.leased + pool.cached != pool.count:
        text = f"{pool.free} free, {owned} owned, {pool.leased} leased, {pool.cached} cached"
        judge.broken("blocks add up", f"{host.name}: {text} of {pool.count}")
    if pool.leased:
        judge.saw("leased blocks")
        _audit(host, judge)


def check_idle(host: EngineHost, judge: Judge) -> None:
    """Nothing is left of any generation."""
    if host.process is None:
        judge.broken("nothing is left", f"{host.name} is dead")
        return
    engine, steps = host.process.parts.engine, host.process.parts.steps
    if not steps.scheduler.idle or engine._live:
        text = f"{host.name}: {len(engine._live)} live, {len(list(steps.scheduler))} sequences"
        judge.broken("nothing is left", text)
    pool = steps.scheduler.pool
    if pool.free + pool.cached != pool.count:
        judge.broken("nothing is left", f"{host.name}: blocks are owned or leased")
    _audit(host, judge)
    caches = host.process.parts.caches
    if caches is not None and (caches.fills or caches.readers):
        text = f"{host.name}: {caches.fills} fills, {caches.readers} readers"
        judge.broken("nothing is left", text)


def _audit(host: EngineHost, judge: Judge) -> None:
    """The pool's own look at its books."""
    if host.process is not None:
        try:
            host.process.parts.steps.scheduler.pool.audit()
        except AssertionError as error:
            judge.broken("blocks add up", f"{host.name}: {error}")
