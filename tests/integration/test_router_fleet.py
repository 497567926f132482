"""A router as one engine: described, watched, operated, drained, stacked."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc
from tokenway.types.v1 import types_pb2 as types

from services.shared.channel import open_channel
from services.shared.errors import Unavailable
from services.shared.stream.events import Failed, Finished
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.servicer import MODEL, ScriptedEngine
from tests.scripted_source import oracle
from tests.waiting import PATIENCE_S, until


async def test_routers_stack() -> None:
    engine = ScriptedEngine()
    async with (
        servers(engine) as fleet,
        router_over(fleet.addresses) as (lower, _),
        router_over([lower.address]) as (_, session),
    ):
        for number, recorder in enumerate(send(session, 4)):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 4)


async def test_health_is_serving_only_while_a_replica_is_ready() -> None:
    status = health_pb2.HealthCheckResponse
    async with (
        servers(ScriptedEngine()) as fleet,
        router_over(fleet.addresses) as (router, _),
        open_channel(router.address) as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)
        watch: Any = stub.Watch(health_pb2.HealthCheckRequest())

        async def told(wanted: int) -> bool:
            """Whether the watch comes to say so."""
            async with asyncio.timeout(PATIENCE_S):
                while (await watch.read()).status != wanted:
                    pass
            return True

        assert await told(status.SERVING)
        await fleet.kill(0)
        assert await told(status.NOT_SERVING)
        await fleet.start(0)
        assert await told(status.SERVING)


async def test_a_router_describes_its_fleet_and_operates_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        router_over(fleet.addresses) as (router, _),
        open_channel(router.address) as channel,
    ):
        stub = rpc.EngineServiceStub(channel)
        described = await stub.Describe(pb.DescribeRequest())
        assert (described.model, described.tokenizer_fingerprint) == (MODEL, "tokenizer-1")
        assert described.load.state == types.REPLICA_STATE_READY
        async for watched in stub.WatchLoad(pb.WatchLoadRequest()):
            assert watched.load.state == types.REPLICA_STATE_READY
            break
        assert (await stub.FlushCache(pb.FlushCacheRequest())).dropped_blocks == 6
        request = pb.SetServiceCacheRequest(enabled=True)
        assert (await stub.SetServiceCache(request)).enabled
        engines[1].has_cache = False
        with pytest.raises(grpc.aio.AioRpcError, match="no service cache is configured") as caught:
            await stub.SetServiceCache(request)
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        told = "1 of 2 replicas failed: no service cache is configured"
        assert caught.value.details() == told
        assert fleet.addresses[1] in caplog.text


async def test_a_replica_that_fails_an_operation_is_named_in_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = ScriptedEngine(flush_fails=Unavailable("failed to connect to ipv4:10.0.0.7:9000"))
    async with (
        servers(engine) as fleet,
        router_over(fleet.addresses) as (router, _),
        open_channel(router.address) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.EngineServiceStub(channel).FlushCache(pb.FlushCacheRequest())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == "1 of 1 replicas failed: it did not answer"
    assert f"{fleet.addresses[0]} failed a call" in caplog.text


async def test_a_router_without_replicas_describes_nothing() -> None:
    async with (
        router_over(["127.0.0.1:1"], ready=0) as (router, _),
        open_channel(router.address) as channel,
    ):
        stub = rpc.EngineServiceStub(channel)
        for call in (
            stub.Describe(pb.DescribeRequest()),
            stub.FlushCache(pb.FlushCacheRequest()),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_drain_waits_for_what_runs_and_refuses_what_comes() -> None:
    engine = ScriptedEngine()
    async with (
        servers(engine, plays=False) as fleet,
        router_over(fleet.addresses) as (router, session),
        open_channel(router.address) as channel,
    ):
        (running,) = send(session, 1)
        await until(lambda: engine.source.running)
        stub = rpc.EngineServiceStub(channel)
        drained = asyncio.ensure_future(stub.Drain(pb.DrainRequest()))
        await until(lambda: router.relay.draining)
        (refused,) = send(session, 1)
        failed = await refused.ended()
        assert isinstance(failed, Failed)
        assert failed.retryable
        assert not drained.done()
        for _ in range(6):
            engine.source.step()
        assert isinstance(await running.ended(), Finished)
        await drained
