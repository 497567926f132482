"""A router is operated over the wire while it serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc
from tokenway.stream.v1 import stream_pb2
from tokenway.types.v1 import types_pb2

from services.router.app import Router
from services.router.balancing.balancing_settings import BalancingSettings
from services.router.balancing.policies import PolicyName
from services.router.balancing.versions import VersionShare
from services.router.demand import Lane
from services.router.replica_spec import ReplicaSpec
from services.router.servicer import NAME
from services.router.settings import ServiceSettings
from services.router.status import Status
from services.shared.channel import open_channel
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Accepted, Finished
from tests.recorder import Recorder
from tests.router.fleet_of_servers import Servers, router_over, send, servers
from tests.router.servicer import ScriptedEngine
from tests.stream_server import playing
from tests.waiting import PATIENCE_S, until


@asynccontextmanager
async def operated(
    fleet: Servers, service: ServiceSettings | None = None
) -> AsyncIterator[tuple[Router, ClientSession, rpc.RouterServiceStub]]:
    """A router over a fleet, a session to it, and its operator's door."""
    async with (
        router_over(fleet.addresses, service=service) as (router, session),
        open_channel(router.address) as channel,
    ):
        yield router, session, rpc.RouterServiceStub(channel)


def request(*prompt_ids: int, session: str | None = None) -> pb.ExplainRequest:
    generation = stream_pb2.GenerateRequest(
        prompt_ids=prompt_ids, routing=types_pb2.RoutingHints(session_key=session)
    )
    return pb.ExplainRequest(request=generation)


async def ended(recorder: Recorder) -> None:
    assert isinstance(await recorder.ended(), Finished)


async def listed(
    operator: rpc.RouterServiceStub, *statuses: pb.ReplicaStatus.ValueType
) -> list[pb.Replica]:
    """All replicas, once these are their states."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            told = (await operator.ListReplicas(pb.ListReplicasRequest())).replicas
            if sorted(one.status for one in told) == sorted(statuses):
                return list(told)


async def test_all_replicas_are_listed_with_what_they_do() -> None:
    async with (
        servers(ScriptedEngine(), ScriptedEngine(), plays=False) as fleet,
        operated(fleet) as (_, session, operator),
    ):
        send(session, 1, max_tokens=50)
        await until(lambda: any(engine.source.running for engine in fleet.engines))
        await fleet.kill(1 if fleet.engines[0].source.running else 0)
        told = await listed(operator, pb.REPLICA_STATUS_READY, pb.REPLICA_STATUS_GONE)
    assert [one.address for one in told] == sorted(fleet.addresses)
    (busy,) = (one for one in told if one.status == pb.REPLICA_STATUS_READY)
    (gone,) = (one for one in told if one.status == pb.REPLICA_STATUS_GONE)
    assert (busy.running, busy.outstanding_tokens, busy.assigned) == (1, 52, 1)
    assert (busy.weight, busy.pool, busy.version, busy.epoch) == (1, "", "weights", 1)
    assert busy.load.state == types_pb2.REPLICA_STATE_READY
    assert gone.reason
    assert not gone.HasField("load")


async def test_a_drained_replica_gives_its_generations_to_others_until_it_is_undrained() -> None:
    async with (
        servers(ScriptedEngine(), ScriptedEngine(), plays=False) as fleet,
        operated(fleet) as (_, session, operator),
    ):
        (recorder,) = send(session, 1)
        await until(lambda: any(engine.source.running for engine in fleet.engines))
        first = 0 if fleet.engines[0].source.running else 1
        drain = pb.DrainReplicaRequest(address=fleet.addresses[first])
        told = (await operator.DrainReplica(drain)).replica
        assert (told.address, told.status) == (drain.address, pb.REPLICA_STATUS_DRAINING)
        async with playing(fleet.engines[1 - first].source):
            await ended(recorder)
        assert not fleet.engines[first].source.running
        drain.undo = True
        told = (await operator.DrainReplica(drain)).replica
        assert told.status == pb.REPLICA_STATUS_READY


async def test_a_weight_is_set_and_0_takes_nothing_new() -> None:
    async with (
        servers(ScriptedEngine(), ScriptedEngine()) as fleet,
        operated(fleet) as (_, session, operator),
    ):
        weigh = pb.SetWeightRequest(address=fleet.addresses[0], weight=0)
        assert (await operator.SetWeight(weigh)).replica.weight == 0
        for recorder in send(session, 6):
            await ended(recorder)
        assert len(fleet.engines[0].source.submitted) == 0
        assert len(fleet.engines[1].source.submitted) == 6


async def test_a_cut_session_comes_back_when_the_time_is_over() -> None:
    async with servers(ScriptedEngine()) as fleet, operated(fleet) as (router, session, operator):
        cut = pb.DisconnectRequest(address=fleet.addresses[0], duration_ms=300)
        await operator.Disconnect(cut)
        replica = router.fleet[fleet.addresses[0]]
        await until(lambda: replica.status is Status.GONE)
        await until(lambda: replica.status is Status.READY)
        assert replica.epoch == 2
        for recorder in send(session, 1):
            await ended(recorder)


async def test_an_explanation_is_of_the_decision_that_follows_and_sends_nothing() -> None:
    async with (
        servers(ScriptedEngine(), ScriptedEngine()) as fleet,
        operated(fleet) as (_, session, operator),
    ):
        told = await operator.Explain(request(0, 1))
        assert told == await operator.Explain(request(0, 1))
        assert told.policy == "affinity"
        assert [option.cost for option in told.options] == [3, 3]
        assert told.options[0].address == told.address
        assert told.options[0].status == pb.REPLICA_STATUS_READY
        assert told.options[0].has_room
        assert not any(engine.source.submitted for engine in fleet.engines)
        (recorder,) = send(session, 1)
        await ended(recorder)
        (accepted,) = (event for event in recorder.events if isinstance(event, Accepted))
        assert accepted.routed == told.reason
        assert fleet.engines[fleet.addresses.index(told.address)].source.submitted


async def test_a_policy_that_is_named_is_used() -> None:
    service = ServiceSettings(balancing=BalancingSettings(policy=PolicyName.ROUND_ROBIN))
    async with (
        servers(ScriptedEngine(), ScriptedEngine()) as fleet,
        operated(fleet, service) as (_, session, operator),
    ):
        assert (await operator.Explain(request(1))).policy == "round_robin"
        for recorder in send(session, 10):
            await ended(recorder)
        assert [len(engine.source.submitted) for engine in fleet.engines] == [5, 5]


async def test_a_canary_takes_its_share_of_new_generations() -> None:
    shares = (VersionShare.parse("old=4"), VersionShare.parse("new=1"))
    service = ServiceSettings(balancing=BalancingSettings(versions=shares))
    engines = [ScriptedEngine(version=version) for version in ("old", "old", "new")]
    async with servers(*engines) as fleet, operated(fleet, service) as (_, session, operator):
        for recorder in send(session, 50):
            await ended(recorder)
        assert len(engines[2].source.submitted) == 10
        listed = (await operator.ListReplicas(pb.ListReplicasRequest())).replicas
        assert sorted(one.version for one in listed) == ["new", "old", "old"]


async def test_long_prompts_have_a_pool_of_their_own_until_it_is_down() -> None:
    service = ServiceSettings(balancing=BalancingSettings(long_prompt_tokens=3))
    async with servers(ScriptedEngine(), ScriptedEngine()) as fleet:
        short, long = fleet.addresses
        specs = [
            ReplicaSpec(address=short, pool=Lane.SHORT),
            ReplicaSpec(address=long, pool=Lane.LONG),
        ]
        async with (
            router_over(specs, service=service) as (router, _),
            open_channel(router.address) as channel,
        ):
            operator = rpc.RouterServiceStub(channel)
            assert (await operator.Explain(request(1, 2))).address == short
            assert (await operator.Explain(request(1, 2, 3))).address == long
            told = await listed(operator, pb.REPLICA_STATUS_READY, pb.REPLICA_STATUS_READY)
            assert {one.address: one.pool for one in told} == {short: "short", long: "long"}
            await fleet.kill(1)
            await until(lambda: router.fleet.ready() == [short])
            explained = await operator.Explain(request(1, 2, 3))
            assert explained.address == short
            assert explained.reason.endswith("; no replica for long prompts is up")


@pytest.mark.parametrize(
    ("call", "message", "code", "said"),
    [
        ("DrainReplica", pb.DrainReplicaRequest(address="x:1"), "NOT_FOUND", "no replica 'x:1'; t"),
        ("SetWeight", pb.SetWeightRequest(address="x:1", weight=1), "NOT_FOUND", "is 127.0.0.1:"),
        ("Disconnect", pb.DisconnectRequest(address="x:1"), "NOT_FOUND", "there is no replica"),
        (
            "SetWeight",
            pb.SetWeightRequest(address="x:1", weight=1001),
            "INVALID_ARGUMENT",
            "weight must be 0 to 1000.0, got 1001.0",
        ),
        (
            "SetWeight",
            pb.SetWeightRequest(address="x:1", weight=float("nan")),
            "INVALID_ARGUMENT",
            "weight must be 0 to 1000.0, got nan",
        ),
        (
            "Disconnect",
            pb.DisconnectRequest(address="x:1", duration_ms=600_001),
            "INVALID_ARGUMENT",
            "duration_ms must be 0 to 600000, got 600001",
        ),
        ("Explain", pb.ExplainRequest(), "INVALID_ARGUMENT", "prompt_ids must not be empty"),
    ],
)
async def test_what_cannot_be_done_is_told(
    call: str, message: object, code: str, said: str
) -> None:
    async with servers(ScriptedEngine()) as fleet, operated(fleet) as (_, _, operator):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(operator, call)(message)
        assert caught.value.code() is grpc.StatusCode[code]
        assert said in (caught.value.details() or "")


async def test_the_operators_door_has_its_own_health() -> None:
    async with servers(ScriptedEngine()) as fleet, router_over(fleet.addresses) as (router, _):
        async with open_channel(router.address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=NAME))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
