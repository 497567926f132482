"""The service cache of a fleet is what was wanted last, also where a replica heard it late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.router.app import Router
from services.router.connections import cache_switch
from services.shared.channel import open_channel
from services.shared.errors import Unavailable
from tests.router.fleet_of_servers import Servers, router_over, servers
from tests.router.servicer import ScriptedEngine
from tests.waiting import until


@asynccontextmanager
async def operated(
    fleet: Servers, ready: int
) -> AsyncIterator[tuple[Router, rpc.EngineServiceStub]]:
    async with (
        router_over(fleet.addresses, ready=ready) as (router, _),
        open_channel(router.address) as channel,
    ):
        yield router, rpc.EngineServiceStub(channel)


async def switch(stub: rpc.EngineServiceStub, *, enabled: bool) -> bool:
    return (await stub.SetServiceCache(pb.SetServiceCacheRequest(enabled=enabled))).enabled


async def test_replicas_are_told_nothing_until_somebody_says_what_is_wanted() -> None:
    engine = ScriptedEngine()
    async with servers(engine) as fleet, operated(fleet, 1) as (_, stub):
        assert (await stub.GetCacheStats(pb.GetCacheStatsRequest())).enabled
        assert engine.switched == []
        assert not await switch(stub, enabled=False)
        assert not (await stub.GetCacheStats(pb.GetCacheStatsRequest())).enabled
        assert engine.switched == [False]


async def test_a_replica_that_comes_back_is_told_before_it_is_given_anything() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with servers(*engines) as fleet, operated(fleet, 2) as (router, stub):
        await switch(stub, enabled=False)
        await fleet.kill(1)
        await until(lambda: len(router.fleet.ready()) == 1)
        engines[1].switched.clear()
        await fleet.start(1)
        await until(lambda: len(router.fleet.ready()) == 2)
        assert [engine.switched for engine in engines] == [[False], [False]]
        await switch(stub, enabled=True)
        assert [engine.switched for engine in engines] == [[False, True], [False, True]]


async def test_a_replica_that_comes_later_is_told() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    engines[1].described = False
    async with servers(*engines) as fleet, operated(fleet, 1) as (router, stub):
        await switch(stub, enabled=False)
        assert engines[1].switched == []
        engines[1].described = True
        await until(lambda: len(router.fleet.ready()) == 2)
        assert engines[1].switched == [False]


async def test_where_one_fails_the_others_are_switched_and_it_is_told_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache_switch, "RETRY_S", 0.01)
    engines = [ScriptedEngine(), ScriptedEngine(), ScriptedEngine()]
    engines[1].switch_fails = Unavailable("busy")
    async with servers(*engines) as fleet, operated(fleet, 3) as (_, stub):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await switch(stub, enabled=False)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert caught.value.details() == "1 of 3 replicas failed: it did not answer"
        assert [engine.switched for engine in engines] == [[False], [], [False]]
        engines[1].switch_fails = None
        await until(lambda: engines[1].switched == [False])


async def test_the_state_that_is_wanted_last_is_the_one_that_is_told_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache_switch, "RETRY_S", 0.01)
    engine = ScriptedEngine(switch_fails=Unavailable("busy"))
    async with servers(engine) as fleet, operated(fleet, 1) as (_, stub):
        for enabled in (False, True, False, True):
            with pytest.raises(grpc.aio.AioRpcError):
                await switch(stub, enabled=enabled)
        engine.switch_fails = None
        await until(lambda: engine.switched == [True])


async def test_what_is_wanted_while_no_replica_is_there_is_told_when_one_comes() -> None:
    engine = ScriptedEngine()
    async with servers(engine) as fleet:
        await fleet.kill(0)
        async with operated(fleet, 0) as (router, stub):
            with pytest.raises(grpc.aio.AioRpcError, match="no replica is reachable"):
                await switch(stub, enabled=False)
            await fleet.start(0)
            await until(lambda: len(router.fleet.ready()) == 1)
            assert engine.switched == [False]
