"""Constraints over the wire: refused before anything is told, compiled beside the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, Sequence
from typing import Any

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.engine.grammar import Matcher
from services.engine.grammar_compiler import GrammarCompiler
from services.engine.grammar_queue import GrammarQueue
from services.engine.sequence import Sequence as State
from services.shared.errors import Code, Internal
from services.shared.model_folder import ModelFolder
from services.shared.stream.events import Failed
from services.shared.stream.generation import Constraint
from tests.engine.grammar_bed import compiler, constrained, parts, regex
from tests.engine.harness import Harness, simulated
from tests.engine.served import served
from tests.waiting import until


@pytest.fixture(scope="module")
def grammars(model_folder: ModelFolder) -> GrammarCompiler:
    return compiler(model_folder)


def request(**constraint: str) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        request_id="r",
        prompt_ids=[1, 400],
        sampling=types.Sampling(seed=1),
        stopping=types.Stopping(max_tokens=40),
        constraint=types.Constraint(**constraint) if constraint else None,
    )


async def kinds(call: AsyncIterable[pb.GenerateResponse]) -> list[str | None]:
    return [event.WhichOneof("event") async for event in call]


async def test_a_bad_constraint_is_a_status_before_anything_is_told(
    grammars: GrammarCompiler,
) -> None:
    async with served(parts(grammars)) as subject:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await kinds(subject.stream.Generate(request(json_schema='{"not": {}}')))
        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "not" in (refusal.value.details() or "")
        trailing: Any = refusal.value.trailing_metadata()
        assert dict(trailing)["tokenway-field"] == "constraint"
        good = await kinds(subject.stream.Generate(request(regex="yes|no")))
    assert (good[0], good[-1]) == ("accepted", "finished")


async def test_an_engine_without_grammars_refuses_constraints() -> None:
    async with served(simulated()) as subject:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await kinds(subject.stream.Generate(request(regex="a")))
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


class Slow:
    """Grammars that compile when they are told to."""

    def __init__(self, inner: GrammarCompiler) -> None:
        self.go = threading.Event()
        self.asked: list[Constraint] = []
        self._inner = inner

    def matcher(
        self, constraint: Constraint, generated_ids: Sequence[int], tenant: str = ""
    ) -> Matcher:
        self.asked.append(constraint)
        self.go.wait(10)
        if constraint.source == "bug":
            raise RuntimeError("a bug")
        return self._inner.matcher(constraint, generated_ids, tenant)


async def test_generations_without_constraints_pass_a_slow_compilation(
    grammars: GrammarCompiler,
) -> None:
    slow = Slow(grammars)
    async with served(parts(slow)) as subject:
        waiting = asyncio.ensure_future(kinds(subject.stream.Generate(request(regex="yes|no"))))
        await until(lambda: len(slow.asked) == 1)
        assert (await kinds(subject.stream.Generate(request())))[-1] == "finished"
        assert not waiting.done()
        slow.go.set()
        assert (await waiting)[-1] == "finished"


async def test_what_is_cancelled_in_the_queue_is_never_compiled(grammars: GrammarCompiler) -> None:
    slow = Slow(grammars)
    async with served(parts(slow)) as subject:
        first = asyncio.ensure_future(kinds(subject.stream.Generate(request(regex="a"))))
        await until(lambda: len(slow.asked) == 1)
        calls = [subject.stream.Generate(request(regex=f"a{number}")) for number in range(4)]
        running = [asyncio.ensure_future(kinds(call)) for call in calls]
        await until(lambda: len(subject.engine._live) == 5)
        for call in calls:
            call.cancel()
        await until(lambda: len(subject.engine._live) == 1)
        slow.go.set()
        assert (await first)[-1] == "finished"
        await asyncio.gather(*running, return_exceptions=True)
        assert len(slow.asked) == 1


def waiting_sequence(constraint: Constraint) -> State:
    return Harness(simulated()).admission.admit(constrained(constraint))


async def outcome(queue: GrammarQueue, constraint: Constraint) -> Failed | None:
    done: asyncio.Future[Failed | None] = asyncio.get_running_loop().create_future()
    queue.put(waiting_sequence(constraint), done.set_result)
    return await done


async def test_who_waits_too_long_may_come_again(grammars: GrammarCompiler) -> None:
    slow = Slow(grammars)
    queue = GrammarQueue(slow, timeout_s=0.01)
    try:
        failure = await outcome(queue, regex("a"))
        assert failure is not None
        assert (failure.code, failure.retryable) == (Code.RESOURCE_EXHAUSTED, True)
    finally:
        slow.go.set()
        queue.close()


async def test_a_bug_in_compiling_tells_nothing(
    grammars: GrammarCompiler, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow(grammars)
    slow.go.set()
    queue = GrammarQueue(slow)
    try:
        assert await outcome(queue, regex("bug")) == Failed.of(Internal("internal error"))
        assert "a constraint met a bug" in caplog.text
        assert await outcome(queue, regex("a")) is None
    finally:
        queue.close()
