"""Replicas of three roles behind one router, over the wire."""

from __future__ import annotations

from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc
from tokenway.stream.v1 import stream_pb2

from services.router.fleet.prefill_rules import PrefillRules
from services.router.settings import ServiceSettings
from services.shared.channel import open_channel
from services.shared.stream.events import Accepted, Finished
from tests.recorder import Recorder, submission
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.servicer import ScriptedEngine
from tests.waiting import until


def request(*prompt_ids: int) -> pb.ExplainRequest:
    return pb.ExplainRequest(request=stream_pb2.GenerateRequest(prompt_ids=prompt_ids))


def engine_for(role: engine_pb2.Role.ValueType) -> ScriptedEngine:
    """An engine of one role from which blocks can be fetched."""
    engine = ScriptedEngine(role=role, block_size=4)
    engine.source.fetches_blocks = True
    return engine


async def test_roles_are_listed_and_an_explanation_names_who_would_compute_the_prompt() -> None:
    roles = (engine_pb2.ROLE_PREFILL, engine_pb2.ROLE_DECODE, engine_pb2.ROLE_BOTH)
    service = ServiceSettings(prefill=PrefillRules(threshold_tokens=8))
    async with (
        servers(*map(engine_for, roles)) as fleet,
        router_over(fleet.addresses, service=service) as (router, _),
        open_channel(router.address) as channel,
    ):
        operator = rpc.RouterServiceStub(channel)
        told = (await operator.ListReplicas(pb.ListReplicasRequest())).replicas
        by_address = {one.address: one.role for one in told}
        assert by_address == dict(zip(fleet.addresses, roles, strict=True))
        prefill, decode, both = fleet.addresses
        long = await operator.Explain(request(*range(9)))
        assert long.address in {decode, both}
        assert "8 prefilled by another" in long.reason
        assert all(address not in long.reason for address in fleet.addresses)
        options = {one.address: one for one in long.options}
        assert {name: one.role for name, one in options.items()} == by_address
        assert [options[name].prefill for name in fleet.addresses] == ["", prefill, prefill]
        short = await operator.Explain(request(1, 2, 3))
        assert {one.prefill for one in short.options} == {""}
        assert router.fleet[prefill].assigned == 0


async def test_a_fleet_stands_for_both_roles_whatever_those_of_its_replicas() -> None:
    async with (
        servers(engine_for(engine_pb2.ROLE_PREFILL)) as fleet,
        router_over(fleet.addresses) as (router, session),
        open_channel(router.address) as channel,
    ):
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        assert (await stub.Describe(engine_pb2.DescribeRequest())).role == engine_pb2.ROLE_BOTH
        (recorder,) = send(session, 1)
        assert isinstance(await recorder.ended(), Finished)
        (accepted,) = (event for event in recorder.events if isinstance(event, Accepted))
        assert "no replica for outputs is up" in accepted.routed


async def test_a_prompt_is_computed_at_one_replica_for_another_over_the_wire() -> None:
    engines = [engine_for(engine_pb2.ROLE_PREFILL), engine_for(engine_pb2.ROLE_DECODE)]
    service = ServiceSettings(prefill=PrefillRules(threshold_tokens=8))
    async with (
        servers(*engines) as fleet,
        router_over(fleet.addresses, service=service) as (router, session),
    ):
        recorder = Recorder()
        session.submit(submission("x", recorder, prompt_ids=tuple(range(9))))
        assert isinstance(await recorder.ended(), Finished)
        there, here = (engine.source.submitted[0].generation for engine in engines)
        assert (there.stopping.max_tokens, here.stopping.max_tokens) == (0, 4)
        assert (there.routing.prefill_peer, here.routing.prefill_peer) == (None, fleet.addresses[0])
        await until(lambda: not any(one.running for one in router.fleet))
