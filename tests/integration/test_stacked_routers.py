"""Routers behind a router: what a caller asks and is told passes through both, whatever dies."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import pytest

from services.router.admission.queue_settings import QueueSettings
from services.router.fleet.health import HealthRules
from services.router.fleet.probe import REQUEST_ID
from services.router.settings import ServiceSettings
from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import Accepted, CancelReason, Failed, Finished
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.recorder import Recorder, generation, submission
from tests.router.clusters import UNPROBED, Cluster, cluster, clusters, entry
from tests.router.fleet_of_servers import send, servers
from tests.router.router_process import address_of, config, router_process
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import SEED, ScriptedSource, oracle
from tests.waiting import PATIENCE_S, until

TRACE_ID = "ab" * 16
QUICK = ServiceSettings(health=HealthRules(degraded_after_s=1.5, stuck_after_s=2))


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
        entry(await address_of(process), one.address) as (
            router,
            session,
        ),
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
        entry(await address_of(process), one.address) as (
            router,
            session,
        ),
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


async def test_a_router_that_refuses_is_passed_over_and_where_all_do_the_caller_is_told_when() -> (
    None
):
    nobody_waits = replace(UNPROBED, queue=QueueSettings(max_waiting=0, slots=1))
    async with (
        cluster(plays=False, service=nobody_waits) as one,
        cluster(plays=False, service=nobody_waits) as other,
        entry(one.address, other.address) as (router, session),
    ):
        send(one.session, 4)
        await until(lambda: running([one]) == 4)
        recorders = send(session, 4)
        await until(lambda: running([other]) == 4)
        (refused,) = send(session, 1)
        failed = await refused.ended()
        assert isinstance(failed, Failed)
        assert (failed.code, failed.retryable) == (Code.RESOURCE_EXHAUSTED, True)
        assert failed.message.startswith("at most 0 generations wait for a replica, 0 do; ")
        assert failed.retry_after_s is not None
        assert 1 <= failed.retry_after_s <= 1.5
        other.step(6)
        for number, recorder in enumerate(recorders):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 4)
        assert {replica.status for replica in router.fleet} == {Status.READY}


@dataclass
class Stalling(ScriptedSource):
    """Makes no step any more once it is told so, and says since when."""

    stalled_at: float | None = None

    def stall(self) -> None:
        self.stalled_at = monotonic()

    def step(self) -> None:
        if self.stalled_at is None:
            super().step()

    def load(self) -> Load:
        stalled_s = 0.0 if self.stalled_at is None else monotonic() - self.stalled_at
        age_ms = round(1000 * stalled_s) if self.running else 0
        return replace(super().load(), progress_age_ms=age_ms)


async def test_a_router_with_one_stuck_engine_is_not_stuck(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sources = [Stalling(), Stalling()]
    engines = (ScriptedEngine(source=sources[0]), ScriptedEngine(source=sources[1]))
    async with (
        cluster(engines, service=QUICK) as one,
        entry(one.address, service=QUICK) as (router, session),
    ):
        (recorder,) = send(session, 1, max_tokens=1000)
        await until(lambda: recorder.ids)
        (stuck,) = (number for number, source in enumerate(sources) if source.running)
        sources[stuck].stall()
        assert isinstance(await recorder.ended(), Finished)
        assert recorder.ids == oracle((0, 1), 1000)
        assert sources[stuck].running.keys() <= {REQUEST_ID}  # a probe is no answer
        assert router.fleet[one.address].assigned == 1
    assert f"{one.servers.addresses[stuck]} is stuck" in caplog.text
    assert f"{one.address} is stuck" not in caplog.text
    assert f"{one.address} is degraded" not in caplog.text


async def test_a_router_without_engines_takes_nothing_and_its_streams_go_on_elsewhere() -> None:
    async with clusters(plays=False) as (router, session, (one, other)):
        recorders = send(session, 8, max_tokens=12)
        await until(lambda: running([one]) == running([other]) == 4)
        for part in (one, other):
            part.step(4)
        await until(lambda: all(len(recorder.ids) == 3 for recorder in recorders))
        await one.servers.kill_all()
        empty = router.fleet[one.address]
        await until(lambda: empty.status is Status.STARTING)
        assert empty.reason == "it says so"
        await until(lambda: running([other]) == 8)
        late = Recorder()
        session.submit(submission("late", late))
        await until(lambda: running([other]) == 9)
        other.step(14)
        for number, recorder in enumerate(recorders):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 12)
        assert isinstance(await late.ended(), Finished)
        await one.servers.start(0, plays=False)
        await until(lambda: empty.status is Status.READY)


def running(behind: Sequence[Cluster]) -> int:
    """Generations at all engines; routers probe those that rest."""
    at_all = [engine.source.running for one in behind for engine in one.engines]
    return sum(len(at_one.keys() - {REQUEST_ID}) for at_one in at_all)
