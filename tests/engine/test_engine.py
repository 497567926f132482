"""The engine over the wire: both doors, refusals, cancel, drain, the pool after a storm."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from tokenway.engine.v1 import engine_pb2
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.engine.parts import Parts
from services.engine.simulated import CostModel, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import CancelReason, Failed, Finished, Tokens
from services.shared.stream.generate import generate
from services.shared.stream.generation import Generation, Sampling, Stopping
from services.shared.stream.load import ReplicaState
from services.shared.stream.source import Submission
from services.shared.tls.way import CLEAR
from tests.engine.harness import LIMITS, Harness, simulated
from tests.engine.served import Served, served
from tests.recorder import Recorder
from tests.waiting import until


def request(number: int = 0, prompt: int = 10, **stopping: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        request_id=f"r{number}",
        prompt_ids=[3 + (number * 7 + index) % 900 for index in range(prompt)],
        sampling=types.Sampling(seed=number),
        stopping=types.Stopping(**({"max_tokens": 12} | stopping)),
    )


def generation(number: int, prompt: int, max_tokens: int) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + (number * 7 + index) % 900 for index in range(prompt)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=max_tokens),
    )


def endless(step_us: float = 1000) -> Parts:
    """Parts whose steps take a while, so that a test can act in the middle."""
    parts = simulated(blocks=200)
    memory = SimulatedMemory(parts.pool.count, parts.pool.size)
    cost = CostModel(step_us=step_us, token_us=0)
    runner = SimulatedRunner(range(3, 1000), memory, cost)
    return replace(parts, runner=runner, memory=memory)


@asynccontextmanager
async def session(subject: Served) -> AsyncIterator[ClientSession]:
    client = ClientSession(CLEAR, subject.address)
    running = asyncio.ensure_future(client.run())
    try:
        await until(lambda: client.load().state is ReplicaState.READY)
        yield client
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()


async def idle(subject: Served) -> None:
    await until(lambda: subject.loop.scheduler.idle)
    pool = subject.loop.scheduler.pool
    assert pool.free + pool.cached == pool.count


async def test_generate_streams_one_generation() -> None:
    (expected,) = Harness(simulated()).outputs([generation(0, 10, 12)])
    async with served(simulated()) as subject:
        events = [event async for event in subject.stream.Generate(request())]
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[0] == "accepted"
    assert kinds[-1] == "finished"
    ids = [token for event in events for token in event.tokens.token_ids]
    assert ids == expected


async def test_describe_tells_model_and_load() -> None:
    async with served(simulated()) as subject:
        told = await subject.service.Describe(engine_pb2.DescribeRequest())
    assert (told.model, told.vocabulary_size, told.context_length) == ("test", 1000, 512)
    assert told.role == engine_pb2.ROLE_BOTH
    assert told.load.total_blocks == told.load.free_blocks == 64
    assert told.load.slots == LIMITS.max_batch_size
    assert not told.load.HasField("device_memory")


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"prompt_ids": [1, 50_000]}, grpc.StatusCode.INVALID_ARGUMENT, "prompt_ids[1]"),
        ({"prompt_ids": []}, grpc.StatusCode.INVALID_ARGUMENT, "prompt_ids"),
        ({"model": "x"}, grpc.StatusCode.NOT_FOUND, "model"),
        (
            {"sampling": types.Sampling(temperature=float("nan"))},
            grpc.StatusCode.INVALID_ARGUMENT,
            "sampling.temperature",
        ),
    ],
)
async def test_bad_requests_are_statuses_naming_the_field(
    change: dict[str, Any], status: grpc.StatusCode, field: str
) -> None:
    async with served(simulated()) as subject:
        call = subject.stream.Generate(
            pb.GenerateRequest(**({"request_id": "r", "prompt_ids": [1]} | change))
        )
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await anext(aiter(call))
        assert refusal.value.code() is status
        trailing: Any = refusal.value.trailing_metadata()
        assert dict(trailing)["tokenway-field"] == field
        good = [event async for event in subject.stream.Generate(request())]
    assert good[-1].WhichOneof("event") == "finished"


async def test_too_many_generations_are_refused_at_once() -> None:
    async with served(endless(), max_concurrency=1) as subject:
        first = subject.stream.Generate(request(max_tokens=400))
        await anext(aiter(first))
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await anext(aiter(subject.stream.Generate(request(1))))
        assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        first.cancel()
        await idle(subject)


async def test_cancelling_the_call_frees_everything() -> None:
    async with served(endless()) as subject:
        call = subject.stream.Generate(request(max_tokens=400))
        await anext(aiter(call))
        call.cancel()
        await idle(subject)


async def test_64_generations_on_a_pool_too_small_all_finish() -> None:
    wanted = [generation(number, 5 + 3 * (number % 20), 4 + number % 30) for number in range(64)]
    expected = Harness(simulated(blocks=1000)).outputs(wanted)
    async with served(simulated(blocks=24)) as subject, session(subject) as client:
        outputs = await asyncio.gather(*(collect(client, one) for one in wanted))
        await idle(subject)
    assert outputs == expected


async def test_a_random_half_cancelled_leaves_no_block_behind() -> None:
    choose = random.Random(7)  # noqa: S311  # a test's choice
    wanted = [generation(number, 5 + 3 * (number % 20), 60) for number in range(64)]
    leaving = set(choose.sample(range(64), 32))
    async with served(endless(step_us=200)) as subject, session(subject) as client:
        tasks = {
            number: asyncio.ensure_future(
                collect(client, one, choose.randint(1, 40) if number in leaving else None)
            )
            for number, one in enumerate(wanted)
        }
        outputs = {number: await task for number, task in tasks.items()}
        await idle(subject)
    assert all(len(outputs[number]) == 60 for number in range(64) if number not in leaving)


async def test_a_drain_finishes_what_runs_and_refuses_what_comes() -> None:
    async with served(endless()) as subject:
        running = aiter(subject.stream.Generate(request(max_tokens=100)))
        await anext(running)
        draining = asyncio.ensure_future(subject.service.Drain(engine_pb2.DrainRequest()))
        await until(lambda: subject.engine.state is ReplicaState.DRAINING)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await anext(aiter(subject.stream.Generate(request(1))))
        assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        rest = [event async for event in running]
        assert rest[-1].WhichOneof("event") == "finished"
        await draining


async def test_a_drain_out_of_time_hands_running_generations_over() -> None:
    async with served(endless(step_us=20_000)) as subject, session(subject) as client:
        events: list[Any] = []
        async for event in generate(client, generation(0, 10, 400), ""):
            events.append(event)
            if isinstance(event, Tokens) and event.first_position == 0:
                await subject.engine.drain(timeout_s=0)
        assert isinstance(events[-1], Failed)
        assert events[-1].retryable
        await idle(subject)


async def test_flush_drops_cached_blocks() -> None:
    async with served(simulated()) as subject:
        _ = [event async for event in subject.stream.Generate(request(prompt=20))]
        flushed = await subject.service.FlushCache(engine_pb2.FlushCacheRequest(service=True))
        assert flushed.dropped_blocks > 0
        assert flushed.dropped_host_blocks == flushed.dropped_service_blocks == 0


@pytest.mark.parametrize("enabled", [False, True])
async def test_the_switch_is_there_without_a_service_cache(enabled: bool) -> None:
    async with served(simulated()) as subject:
        switched = await subject.service.SetServiceCache(
            engine_pb2.SetServiceCacheRequest(enabled=enabled)
        )
        stats = await subject.service.GetCacheStats(engine_pb2.GetCacheStatsRequest())
        assert (switched.enabled, stats.enabled, stats.type) == (enabled, enabled, "none")


async def test_a_reader_with_a_bug_ends_alone() -> None:
    async with served(simulated()) as subject:
        broken: list[Any] = []

        def sink(event: Any) -> None:
            broken.append(event)
            raise RuntimeError("a reader's bug")

        subject.engine.submit(Submission(generation(0, 10, 12), "", sink))
        events = [event async for event in subject.stream.Generate(request(1))]
        assert events[-1].WhichOneof("event") == "finished"
        assert len(broken) == 1
        await idle(subject)


async def collect(
    client: ClientSession, wanted: Generation, leave_after: int | None = None
) -> list[int]:
    ids: list[int] = []
    events = generate(client, wanted, "")
    try:
        async for event in events:
            if isinstance(event, Tokens):
                ids += event.ids
            if isinstance(event, Failed):
                raise event.error()
            if isinstance(event, Finished) or (leave_after and len(ids) >= leave_after):
                return ids
    finally:
        await events.aclose()
    raise AssertionError("the stream ended without an end")


async def test_generations_are_counted_wherever_they_are() -> None:
    async with served(endless(step_us=5000)) as subject, session(subject) as client:
        counts = subject.engine.counts

        def everywhere() -> tuple[int, int, dict[str, int]]:
            now = counts()
            assert now.started == now.running + now.waiting + sum(now.ended.values())
            return now.running, now.waiting, {end: n for end, n in now.ended.items() if n}

        cancels = [
            client.submit(Submission(generation(number, 10, 400), "", Recorder()))
            for number in range(LIMITS.max_batch_size + 2)
        ]
        await until(lambda: everywhere() == (LIMITS.max_batch_size, 2, {}))
        late = Recorder()
        client.submit(Submission(generation(99, 600, 1), "", late))
        await until(lambda: isinstance(late.last, Failed))
        assert everywhere()[2] == {"refused": 1}
        for cancel in cancels:
            cancel(CancelReason.CLIENT_GONE)
        short = Recorder()
        client.submit(Submission(generation(98, 10, 1), "", short))
        await until(lambda: isinstance(short.last, Finished))
        assert everywhere() == (0, 0, {"refused": 1, "cancelled": 10, "finished": 1})
