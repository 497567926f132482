"""Versions of a model behind routers that are replicas: tokens of one output are of one version."""

from __future__ import annotations

from dataclasses import replace

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.router.app import Router
from services.router.balancing.balancing_settings import BalancingSettings
from services.router.balancing.versions import VersionShare
from services.router.status import Status
from services.shared.channel import open_channel
from services.shared.stream.events import Finished
from tests.router.clusters import UNPROBED, cluster
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import oracle
from tests.waiting import until

BOTH = replace(
    UNPROBED,
    balancing=BalancingSettings(
        versions=(VersionShare(fingerprint="weights"), VersionShare(fingerprint="canary"))
    ),
)


async def test_a_router_over_two_versions_stands_for_one_of_them() -> None:
    engines = (ScriptedEngine(), ScriptedEngine(version="canary"))
    async with (
        cluster(engines, service=BOTH) as one,
        router_over([one.address]) as (router, session),
    ):
        leading = (await described(one.router)).model_fingerprint
        assert (await described(router)).model_fingerprint == leading
        (chosen,) = (engine for engine in engines if engine.version == leading)
        (other,) = (engine for engine in engines if engine.version != leading)
        for recorder in send(session, 8):
            assert isinstance(await recorder.ended(), Finished)
        assert len(chosen.source.submitted) == 8
        for recorder in send(one.session, 8):
            assert isinstance(await recorder.ended(), Finished)
        assert len(other.source.submitted) == 4


async def test_what_was_begun_goes_on_with_its_version_though_a_router_has_another_too() -> None:
    engines = (ScriptedEngine(), ScriptedEngine(version="canary"))
    async with cluster(engines, service=BOTH, plays=False) as one:
        leading = (await described(one.router)).model_fingerprint
        chosen, spare = sorted(engines, key=lambda engine: engine.version != leading)
        twins = (ScriptedEngine(version=leading), ScriptedEngine(version=leading))
        async with (
            cluster(twins, plays=False, service=BOTH) as other,
            router_over([one.address, other.address], service=BOTH) as (router, session),
        ):
            recorders = send(session, 4, max_tokens=12)
            await until(lambda: sum(len(engine.source.running) for engine in other.engines) == 2)
            other.step(4)
            await until(lambda: sum(len(recorder.ids) == 3 for recorder in recorders) == 2)
            await other.servers.kill_all()
            await until(lambda: len(chosen.source.running) == 4)
            one.step(14)
            for number, recorder in enumerate(recorders):
                assert isinstance(await recorder.ended(), Finished)
                assert recorder.ids == oracle((number, 1), 12)
            assert not spare.source.submitted
            assert router.fleet[one.address].assigned >= 4


async def test_a_router_whose_engines_come_back_as_another_version_is_described_again() -> None:
    engine = ScriptedEngine()
    async with (
        servers(engine) as fleet,
        router_over(fleet.addresses) as (lower, _),
        router_over([lower.address]) as (router, session),
    ):
        replica = router.fleet[lower.address]
        assert replica.identity is not None
        assert replica.identity.version == "weights"
        await fleet.kill(0)
        engine.version = "canary"
        await fleet.start(0)
        await until(lambda: replica.identity is not None and replica.identity.version == "canary")
        assert replica.epoch == 1
        await until(lambda: replica.status is Status.READY)
        for number, recorder in enumerate(send(session, 4)):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 4)


async def described(router: Router) -> pb.DescribeResponse:
    async with open_channel(router.address) as channel:
        return await rpc.EngineServiceStub(channel).Describe(pb.DescribeRequest())
