"""A router between real servers: balance, death, cancel, deadline, strangers."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import CancelReason, Failed, Finished
from services.shared.stream.load import ReplicaState
from tests.recorder import Recorder, submission
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.servicer import MODEL, ScriptedEngine
from tests.scripted_source import oracle
from tests.waiting import until


async def test_64_streams_are_shared_evenly_and_all_are_whole() -> None:
    engines = [ScriptedEngine() for _ in range(4)]
    async with servers(*engines) as fleet, router_over(fleet.addresses) as (_, session):
        recorders = send(session, 64, max_tokens=20)
        for number, recorder in enumerate(recorders):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 20)
    counts = [len(engine.source.submitted) for engine in engines]
    assert sum(counts) == 64
    assert max(counts) - min(counts) <= 8


async def test_a_replica_killed_before_the_first_tokens_loses_no_request() -> None:
    engines = [ScriptedEngine() for _ in range(2)]
    async with (
        servers(*engines, plays=False) as fleet,
        router_over(fleet.addresses) as (_, session),
    ):
        recorders = send(session, 16)
        await until(lambda: sum(len(engine.source.running) for engine in engines) == 16)
        engines[0].source.step()
        await until(lambda: sum(recorder.accepted() for recorder in recorders) == 8)
        await fleet.kill(0)
        await until(lambda: len(engines[1].source.running) == 16)
        for _ in range(6):
            engines[1].source.step()
        for number, recorder in enumerate(recorders):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 4)
            assert recorder.accepted() == 1


async def test_100_streams_lose_and_repeat_no_token_when_replicas_die_one_after_the_other() -> None:
    engines = [ScriptedEngine() for _ in range(3)]
    async with (
        servers(*engines, plays=False) as fleet,
        router_over(fleet.addresses) as (router, session),
    ):
        recorders = send(session, 100, max_tokens=20)
        for number in range(3):
            await until(lambda: sum(len(engine.source.running) for engine in engines) == 100)
            assert engines[number].source.running
            for engine in engines * 4:
                engine.source.step()
            await until(lambda: all(recorder.ids for recorder in recorders))
            await fleet.kill(number)
            await until(lambda: len(router.fleet.ready()) == 2)
            await fleet.start(number, plays=False)
            await until(lambda: len(router.fleet.ready()) == 3)
        await until(lambda: sum(len(engine.source.running) for engine in engines) == 100)
        for engine in engines * 20:
            engine.source.step()
        interruptions = 0
        for number, recorder in enumerate(recorders):
            finished = await recorder.ended()
            assert isinstance(finished, Finished)
            assert recorder.ids == oracle((number, 1), 20)
            assert recorder.accepted() == 1
            assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (2, 20)
            interruptions += finished.timeline.continuations
        assert interruptions >= 33


async def test_a_replica_that_comes_back_takes_its_share_again() -> None:
    engines = [ScriptedEngine() for _ in range(2)]
    async with servers(*engines) as fleet, router_over(fleet.addresses) as (router, session):
        await fleet.kill(0)
        await until(lambda: router.fleet.ready() == [fleet.addresses[1]])
        for recorder in send(session, 4):
            assert isinstance(await recorder.ended(), Finished)
        assert not engines[0].source.submitted
        await fleet.start(0)
        await until(lambda: len(router.fleet.ready()) == 2)
        for recorder in send(session, 8):
            assert isinstance(await recorder.ended(), Finished)
        assert len(engines[0].source.submitted) >= 4


@pytest.mark.parametrize("state", [ReplicaState.STARTING, ReplicaState.DRAINING])
async def test_a_replica_that_is_not_ready_takes_nothing(state: ReplicaState) -> None:
    engines = [ScriptedEngine() for _ in range(2)]
    engines[0].source.state = state
    async with servers(*engines) as fleet, router_over(fleet.addresses, ready=1) as (_, session):
        for recorder in send(session, 8):
            assert isinstance(await recorder.ended(), Finished)
    assert not engines[0].source.submitted


async def test_a_replica_that_cannot_describe_itself_yet_takes_nothing_until_it_can() -> None:
    engines = [ScriptedEngine() for _ in range(2)]
    engines[0].described = False
    async with servers(*engines) as fleet, router_over(fleet.addresses, ready=1) as (router, _):
        assert router.fleet[fleet.addresses[0]].status in (Status.STARTING, Status.GONE)
        engines[0].described = True
        await until(lambda: len(router.fleet.ready()) == 2)


@pytest.mark.parametrize(
    ("stranger", "field"),
    [
        (ScriptedEngine(model="other"), "model"),
        (ScriptedEngine(tokenizer="other"), "tokenizer_fingerprint"),
        (ScriptedEngine(version="other"), "version"),
    ],
)
async def test_a_replica_of_another_model_is_named_and_takes_nothing(
    stranger: ScriptedEngine, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    engines = [ScriptedEngine(), stranger]
    async with servers(engines[0]) as known, servers(engines[1]) as strange:
        addresses = [*known.addresses, *strange.addresses]
        async with router_over(addresses, ready=1) as (router, session):
            await until(lambda: "of another model" in caplog.text)
            for number, recorder in enumerate(send(session, 4)):
                assert isinstance(await recorder.ended(), Finished)
                assert recorder.ids == oracle((number, 1), 4)
            counts = Counter(one.status for one in router.fleet)
            assert counts == {Status.READY: 1, Status.MISMATCHED: 1}
            (unlike,) = (one for one in router.fleet if one.status is Status.MISMATCHED)
            assert not engines[addresses.index(unlike.name)].source.submitted
    assert f"{unlike.name} is of another model: {field} is " in caplog.text


async def test_a_cancel_reaches_the_replica_with_its_reason() -> None:
    engine = ScriptedEngine()
    async with servers(engine) as fleet, router_over(fleet.addresses) as (_, session):
        recorder = Recorder()
        cancel = session.submit(submission("x", recorder, max_tokens=10_000))
        await recorder.until(3)
        cancel(CancelReason.STOP_TEXT)
        await until(lambda: engine.source.cancelled == [("x", CancelReason.STOP_TEXT)])


async def test_a_deadline_is_kept_by_the_router_when_the_replica_does_not() -> None:
    engine = ScriptedEngine()
    async with servers(engine) as fleet, router_over(fleet.addresses) as (_, session):
        recorder = Recorder()
        session.submit(submission("x", recorder, max_tokens=100_000, timeout_ms=200))
        failed = await recorder.ended()
        assert isinstance(failed, Failed)
        assert failed.code is Code.DEADLINE_EXCEEDED
        await until(lambda: engine.source.cancelled == [("x", CancelReason.DEADLINE)])
        timeout_ms = engine.source.submitted[0].generation.quality_of_service.timeout_ms
        assert timeout_ms is not None
        assert 0 < timeout_ms <= 200


async def test_a_caller_that_goes_away_cancels_its_generations_at_the_replicas() -> None:
    engine = ScriptedEngine()
    async with servers(engine) as fleet:
        async with router_over(fleet.addresses) as (_, session):
            recorders = send(session, 4, max_tokens=10_000)
            await until(lambda: all(recorder.ids for recorder in recorders))
        await until(lambda: len(engine.source.cancelled) == 4)


async def test_a_replica_that_speaks_garbage_is_contained_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x80\x04\x95pickle" * 100)
        writer.close()

    garbage = await asyncio.start_server(talk, "127.0.0.1", 0)
    host, port = garbage.sockets[0].getsockname()
    engine = ScriptedEngine()
    caplog.set_level("INFO")
    async with servers(engine) as fleet:
        addresses = [*fleet.addresses, f"{host}:{port}"]
        async with router_over(addresses, ready=1) as (_, session):
            for recorder in send(session, 8):
                assert isinstance(await recorder.ended(), Finished)
            await until(lambda: f"session to {host}:{port} ended" in caplog.text)
    garbage.close()
    await garbage.wait_closed()


async def test_no_replica_ready_is_told_with_their_states() -> None:
    engine = ScriptedEngine()
    engine.source.state = ReplicaState.DRAINING
    async with (
        servers(engine) as fleet,
        router_over([*fleet.addresses, "127.0.0.1:1"], ready=0) as (router, session),
    ):
        await until(router.fleet.members)
        (recorder,) = send(session, 1)
        message = "no replica can take the generation; of 2: 1 draining, 1 gone"
        assert await recorder.ended() == Failed(
            code=Code.UNAVAILABLE, message=message, retryable=True
        )


async def test_another_model_is_not_found() -> None:
    async with (
        servers(ScriptedEngine()) as fleet,
        router_over(fleet.addresses) as (_, session),
    ):
        (recorder,) = send(session, 1, model="gpt")
        assert await recorder.ended() == Failed(
            code=Code.NOT_FOUND,
            message=f"model 'gpt' is not served here, '{MODEL}' is",
            field="model",
        )
