"""Prompts are computed by one engine for another behind a router, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1.engine_pb2_grpc import EngineServiceStub

from services.engine.settings import Role
from services.router.app import Router
from services.router.fleet.prefill_rules import PrefillRules
from services.router.settings import ServiceSettings
from services.shared.channel import open_channel
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Accepted, CachedTokens, Finished
from services.shared.stream.generation import Generation, RoutingHints, Sampling, Stopping
from services.shared.stream.source import Submission
from tests.engine.harness import simulated
from tests.engine.served import Served, served
from tests.recorder import Recorder
from tests.router.fleet_of_servers import router_over
from tests.waiting import until

BLOCK_TOKENS = 4
LONG = tuple(range(100, 141))
SHORT = LONG[:7]
RULES = PrefillRules(threshold_tokens=16, peer_tokens=BLOCK_TOKENS)


@dataclass(frozen=True, slots=True)
class Fleet:
    """Engines behind a router; `session` is to the router."""

    engines: Sequence[Served]
    router: Router
    session: ClientSession

    async def answer(self, prompt_ids: Sequence[int], peer: str | None = None) -> Recorder:
        recorder = Recorder()
        asked = Generation(
            request_id="x",
            prompt_ids=prompt_ids,
            sampling=Sampling(seed=5),
            stopping=Stopping(max_tokens=8),
            routing=RoutingHints(prefill_peer=peer),
        )
        self.session.submit(Submission(asked, "", recorder))
        assert isinstance(await recorder.ended(), Finished)
        await until(lambda: not any(one.running for one in self.router.fleet))
        return recorder

    def assigned(self) -> list[int]:
        """How many generations and prompts each engine was given."""
        return [self.router.fleet[engine.address].assigned for engine in self.engines]


@asynccontextmanager
async def fleet(*roles: Role, rules: PrefillRules = RULES) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        engines = [
            await stack.enter_async_context(served(simulated(), role=role)) for role in roles
        ]
        router, session = await stack.enter_async_context(
            router_over([one.address for one in engines], service=ServiceSettings(prefill=rules))
        )
        await until(lambda: all(_fetches(router, one.address) for one in engines))
        yield Fleet(engines, router, session)


def _fetches(router: Router, address: str) -> bool:
    load = router.fleet[address].load
    return load is not None and load.fetches_blocks


def cached(recorder: Recorder) -> CachedTokens:
    (accepted,) = (event for event in recorder.events if isinstance(event, Accepted))
    return accepted.cached_tokens


@pytest.fixture
async def alone() -> list[int]:
    """What one engine answers."""
    async with fleet(Role.BOTH) as one:
        return (await one.answer(LONG)).ids


async def test_a_long_prompt_is_computed_by_one_engine_and_answered_by_another(
    alone: list[int],
) -> None:
    async with fleet(Role.PREFILL, Role.DECODE) as both:
        answer = await both.answer(LONG)
        assert both.assigned() == [1, 1]
        assert answer.ids == alone
        assert cached(answer) == CachedTokens(peer=40)


async def test_a_short_prompt_is_computed_where_it_is_answered() -> None:
    async with fleet(Role.PREFILL, Role.DECODE) as both:
        answer = await both.answer(SHORT)
        assert both.assigned() == [0, 1]
        assert cached(answer) == CachedTokens()


async def test_what_one_engine_has_another_one_fetches(alone: list[int]) -> None:
    async with fleet(Role.DECODE, Role.BOTH) as both:
        await both.answer(LONG)
        first, second = both.engines
        if both.assigned() == [0, 1]:
            first, second = second, first
        await until(lambda: both.router.fleet.index.known_blocks(first.address) > 0)
        both.router.fleet.drain(first.address)
        answer = await both.answer(LONG)
        assert answer.ids == alone
        assert cached(answer) == CachedTokens(peer=40)


async def test_where_the_cache_is_off_each_engine_computes_its_own(alone: list[int]) -> None:
    async with (
        fleet(Role.PREFILL, Role.DECODE) as both,
        open_channel(both.router.address) as channel,
    ):
        stub = EngineServiceStub(channel)
        assert not (await stub.SetServiceCache(pb.SetServiceCacheRequest(enabled=False))).enabled
        await until(lambda: not any(_fetches(both.router, one.address) for one in both.engines))
        answer = await both.answer(LONG)
        assert answer.ids == alone
        assert (both.assigned(), cached(answer)) == ([0, 1], CachedTokens())
        assert (await stub.SetServiceCache(pb.SetServiceCacheRequest(enabled=True))).enabled
        await until(lambda: all(_fetches(both.router, one.address) for one in both.engines))
        await both.answer([*LONG[::-1]])
        assert both.assigned() == [1, 2]


@pytest.mark.parametrize("roles", [(Role.DECODE,), (Role.PREFILL, Role.DECODE)])
async def test_no_engine_goes_where_a_caller_points(roles: Sequence[Role]) -> None:
    visits = 0

    def visited(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        writer.close()

    async with await asyncio.start_server(visited, "127.0.0.1", 0) as trap, fleet(*roles) as some:
        host, port = trap.sockets[0].getsockname()
        await some.answer(LONG, peer=f"{host}:{port}")
        await some.answer(SHORT[::-1], peer=f"{host}:{port}")
    assert visits == 0


async def test_a_threshold_of_0_sends_no_prompt_elsewhere(alone: list[int]) -> None:
    async with fleet(Role.PREFILL, Role.DECODE, rules=replace(RULES, threshold_tokens=0)) as both:
        answer = await both.answer(LONG)
        assert both.assigned() == [0, 1]
        assert answer.ids == alone
