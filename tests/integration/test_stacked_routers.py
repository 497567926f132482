"""Routers behind a router: what a caller asks and is told passes through both, whatever dies."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import Accepted, CancelReason, Failed, Finished
from services.shared.stream.source import Submission
from tests.recorder import Recorder, generation, submission
from tests.router.clusters import Cluster, cluster, clusters
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.router_process import address_of, config, router_process
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import SEED, oracle
from tests.waiting import PATIENCE_S, until

TRACE_ID = "ab" * 16


async def test_streams_pass_two_routers_exactly_and_all_engines_have_a_share() -> None:
    async with clusters() as (_, session, behind):
        recorders = send(session, 64, max_tokens=20)
        for number, recorder in enumerate(recorders):
            finished = await recorder.ended()
            assert isinstance(finished, Finished)
            assert recorder.ids == oracle((number, 1), 20)
            assert recorder.accepted() == 1
            assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (2, 20)
            assert finished.timeline.continuations == 0
        for engine in (engine for one in behind for engine in one.engines):
            assert len(engine.source.submitted) >= 8


async def test_what_is_asked_arrives_at_the_engine_and_both_decisions_are_told() -> None:
    async with clusters(1) as (_, session, (one,)):
        asked, recorder = generation("x", timeout_ms=60_000), Recorder()
        asked = replace(asked, sampling=replace(asked.sampling, seed=5, top_k=3))
        session.submit(Submission(asked, f"00-{TRACE_ID}-{'cd' * 8}-01", recorder))
        assert isinstance(await recorder.ended(), Finished)
        (arrived,) = one.engines[0].source.submitted + one.engines[1].source.submitted
        assert arrived.generation.request_id == "x"
        assert arrived.generation.prompt_ids == [1, 2, 3]
        assert arrived.generation.sampling == asked.sampling
        assert arrived.traceparent.split("-")[1] == TRACE_ID
        timeout_ms = arrived.generation.quality_of_service.timeout_ms
        assert timeout_ms is not None
        assert 0 < timeout_ms <= 60_000
        accepted = recorder.events[0]
        assert isinstance(accepted, Accepted)
        assert accepted.seed == SEED
        assert accepted.routed.count("1 ready") == 1
        assert accepted.routed.count("2 ready") == 1


async def test_an_engine_that_dies_is_the_affair_of_its_own_router() -> None:
    async with clusters(plays=False) as (router, session, behind):
        recorders = send(session, 16, max_tokens=12)
        one = behind[0]
        await until(lambda: running(behind) == 16)
        for part in behind:
            part.step(5)
        await until(lambda: all(len(recorder.ids) == 4 for recorder in recorders))
        moved = len(one.engines[0].source.running)
        assert moved
        await one.servers.kill(0)
        await until(lambda: len(one.engines[1].source.running) == 8)
        for part in behind:
            part.step(12)
        continuations = 0
        for number, recorder in enumerate(recorders):
            finished = await recorder.ended()
            assert isinstance(finished, Finished)
            assert recorder.ids == oracle((number, 1), 12)
            continuations += finished.timeline.continuations
        assert continuations == moved
        assert [replica.assigned for replica in router.fleet] == [8, 8]
        assert {replica.status for replica in router.fleet} == {Status.READY}


async def test_a_router_that_is_killed_loses_no_token_and_the_next_death_adds_up(
    tmp_path: Path,
) -> None:
    engine = ScriptedEngine()
    async with (
        servers(engine, plays=False) as fleet,
        router_process("--config", config(tmp_path, fleet.addresses)) as process,
        cluster(plays=False) as one,
        router_over([await address_of(process), one.address]) as (router, session),
    ):
        recorders = send(session, 8, max_tokens=12)
        await until(lambda: len(engine.source.running) == 4 and running([one]) == 4)
        engine.source.step()
        engine.source.step()
        one.step(2)
        await until(lambda: all(recorder.ids for recorder in recorders))
        process.kill()
        await until(lambda: running([one]) == 8)
        one.step(4)
        await until(lambda: all(len(recorder.ids) >= 4 for recorder in recorders))
        interrupted = len(one.engines[0].source.running)
        await one.servers.kill(0)
        await until(lambda: len(one.engines[1].source.running) == 8)
        one.step(12)
        continuations = 0
        for number, recorder in enumerate(recorders):
            finished = await recorder.ended()
            assert isinstance(finished, Finished)
            assert recorder.ids == oracle((number, 1), 12)
            assert recorder.accepted() == 1
            assert finished.usage.completion_tokens == 12
            continuations += finished.timeline.continuations
        assert continuations == 4 + interrupted
        assert sum(replica.assigned for replica in router.fleet) == 12


async def test_a_router_that_is_told_to_stop_says_so_and_its_streams_move(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with (
        servers(engine, plays=False) as fleet,
        router_process("--config", config(tmp_path, fleet.addresses, settle_s=60)) as process,
        cluster(plays=False) as one,
        router_over([await address_of(process), one.address]) as (router, session),
    ):
        recorders = send(session, 8, max_tokens=12)
        await until(lambda: len(engine.source.running) == 4 and running([one]) == 4)
        engine.source.step()
        engine.source.step()
        one.step(2)
        await until(lambda: all(recorder.ids for recorder in recorders))
        process.send_signal(signal.SIGTERM)
        await until(lambda: running([one]) == 8)
        await until(lambda: len(engine.source.cancelled) == 4)
        assert {reason for _, reason in engine.source.cancelled} == {CancelReason.MOVED}
        leaving = next(iter(router.fleet))
        assert (leaving.status, leaving.reason) == (Status.DRAINING, "it says so")
        one.step(12)
        for number, recorder in enumerate(recorders):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 12)
        process.send_signal(signal.SIGTERM)  # nobody has to hear of it any more
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


async def test_a_cancel_reaches_the_engine_through_two_routers_with_its_reason() -> None:
    async with clusters() as (_, session, behind):
        recorder = Recorder()
        cancel = session.submit(submission("x", recorder, max_tokens=10_000))
        await recorder.until(3)
        (engine,) = (one for part in behind for one in part.engines if one.source.submitted)
        cancel(CancelReason.STOP_TEXT)
        await until(lambda: engine.source.cancelled == [("x", CancelReason.STOP_TEXT)])


async def test_a_deadline_ends_a_generation_at_the_engine_through_two_routers() -> None:
    async with clusters() as (router, session, behind):
        recorder = Recorder()
        session.submit(submission("x", recorder, max_tokens=100_000, timeout_ms=300))
        failed = await recorder.ended()
        assert isinstance(failed, Failed)
        assert (failed.code, failed.retryable) == (Code.DEADLINE_EXCEEDED, False)
        (engine,) = (one for part in behind for one in part.engines if one.source.submitted)
        await until(lambda: engine.source.cancelled == [("x", CancelReason.DEADLINE)])
        assert {replica.status for replica in router.fleet} == {Status.READY}


def running(behind: Sequence[Cluster]) -> int:
    """Generations at all engines."""
    return sum(len(engine.source.running) for one in behind for engine in one.engines)
