"""What a router knows of the blocks of engines, over real connections."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from tokenway.engine.v1 import engine_pb2 as pb

from services.router.app import Router
from services.router.demand import demand_of
from services.shared.addresses import next_address, root_address
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Finished
from services.shared.stream.generation import CacheControl, Generation, Sampling, Stopping
from services.shared.stream.source import BlockWatcher, Submission
from tests.engine.harness import MODEL, Harness, simulated
from tests.engine.served import served
from tests.recorder import Recorder
from tests.router.fleet_of_servers import router_over
from tests.waiting import until

PROMPT = tuple(range(100, 122))  # five full blocks of four, and two tokens


def generation(name: str, prompt_ids: Sequence[int] = PROMPT, salt: bytes = b"") -> Generation:
    return Generation(
        request_id=name,
        prompt_ids=prompt_ids,
        sampling=Sampling(seed=5),
        stopping=Stopping(max_tokens=8),
        cache=CacheControl(salt=salt),
    )


async def run(session: ClientSession, asked: Generation) -> Recorder:
    recorder = Recorder()
    session.submit(Submission(asked, "", recorder))
    assert isinstance(await recorder.ended(), Finished)
    return recorder


def cached(router: Router, asked: Generation) -> list[int]:
    """Tokens of it that replicas are known to have cached, of those that have any."""
    return list(router.fleet.index.cached_tokens(demand_of(asked, 1_000_000)).values())


async def test_a_router_knows_an_engines_blocks_until_they_are_flushed() -> None:
    async with served(simulated()) as engine, router_over([engine.address]) as (router, session):
        assert cached(router, generation("a")) == []
        await run(session, generation("a"))
        await until(lambda: cached(router, generation("a")) == [20])
        assert cached(router, generation("b", PROMPT[:10])) == [8]
        assert cached(router, generation("c", PROMPT[1:])) == []
        assert cached(router, generation("a", salt=b"another tenant")) == []
        pool = engine.loop.scheduler.pool
        assert router.fleet.index.known_blocks(engine.address) == pool.cached == 7
        flushed = await engine.service.FlushCache(pb.FlushCacheRequest())
        assert flushed.dropped_blocks == 7
        await until(lambda: router.fleet.index.known_blocks(engine.address) == 0)
        assert cached(router, generation("a")) == []


async def test_of_an_engine_that_restarts_nothing_is_known_until_it_tells() -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        engine = await first.enter_async_context(served(simulated()))
        router, session = await stack.enter_async_context(router_over([engine.address]))
        await run(session, generation("a"))
        await until(lambda: cached(router, generation("a")))
        await first.aclose()
        await until(lambda: not router.fleet.ready())
        assert router.fleet.index.known_blocks(engine.address) == 0
        await stack.enter_async_context(served(simulated(), address=engine.address))
        await until(router.fleet.ready)
        assert cached(router, generation("a")) == []
        await run(session, generation("b"))
        await until(lambda: cached(router, generation("a")) == [20])


async def test_a_router_that_comes_later_is_told_what_is_there() -> None:
    async with served(simulated()) as engine:
        async with router_over([engine.address]) as (_, session):
            await run(session, generation("a"))
        async with router_over([engine.address]) as (router, _):
            await until(lambda: cached(router, generation("a")) == [20])


class Liar:
    """Claims to have a prompt's blocks, whatever happens."""

    def __init__(self, prompt_ids: Sequence[int]) -> None:
        size, address = 4, root_address(MODEL.fingerprint, MODEL.kv_layout_id, b"")
        self.claimed: list[bytes] = []
        for start in range(0, len(prompt_ids) - size + 1, size):
            address = next_address(address, prompt_ids[start : start + size])
            self.claimed.append(address)

    def watch(self, watcher: BlockWatcher) -> None:
        watcher.found(self.claimed)

    def unwatch(self, watcher: BlockWatcher) -> None:
        """It never says anything else."""


async def test_an_engine_that_claims_blocks_which_it_lacks_computes_them_and_answers_right() -> (
    None
):
    asked = [generation(f"r{number}") for number in range(6)]
    (expected,) = Harness(simulated()).outputs([asked[0]])
    async with (
        served(simulated(), blocks=Liar(PROMPT)) as liar,
        served(simulated()) as honest,
        router_over([liar.address, honest.address]) as (router, session),
    ):
        await until(lambda: cached(router, asked[0]) == [20])
        for each in asked:
            assert (await run(session, each)).ids == expected
        sent = {name: router.fleet[name].assigned for name in (liar.address, honest.address)}
    assert sum(sent.values()) == 6
    assert sent[liar.address] > 0
