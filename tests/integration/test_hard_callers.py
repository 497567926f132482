"""Callers that a router must bear: one that never reads, and very many at once."""

from __future__ import annotations

from typing import Any

import grpc
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.router.admission.queue_settings import QueueSettings
from services.router.settings import ServiceSettings
from services.shared.errors import Code
from services.shared.stream.event_wire import events_of
from services.shared.stream.events import Failed, Finished, Tokens
from services.shared.stream.generation_wire import request_of
from services.shared.stream.open_streams import OpenStreams
from tests.recorder import Recorder, generation
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import oracle
from tests.stream_server import playing
from tests.waiting import until

NARROW = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65536))
"""A caller to whom 64 kB may be under way."""

STREAMS = 100
TOKENS = 1000
FRAMES = TOKENS / 2
CALLERS = 5000
PLACES = 2000
REFUSED = CALLERS - PLACES - 2 * (64 + 8)


async def test_who_never_reads_holds_up_nobody_and_costs_no_more_than_its_outputs() -> None:
    engine, service = ScriptedEngine(), ServiceSettings(queue=QueueSettings(slots=2 * STREAMS))
    async with (
        servers(engine) as fleet,
        router_over(fleet.addresses, service=service) as (router, session),
        grpc.aio.insecure_channel(router.address, NARROW) as channel,
    ):
        call: Any = rpc.TokenStreamServiceStub(channel).Session  # typed as if it took all at once
        call = call()
        opened = OpenStreams("router", lambda *_: None)
        deaf = [Recorder() for _ in range(STREAMS)]
        for number, recorder in enumerate(deaf):
            asked = generation(f"deaf{number}", prompt_ids=(number, 2), max_tokens=TOKENS)
            submit = pb.Submit(stream_id=opened.open(recorder, 0), request=request_of(asked))
            await call.write(pb.SessionRequest(submit=submit))
        await until(lambda: len(engine.source.running) == STREAMS)
        for number, recorder in enumerate(send(session, 16, max_tokens=50)):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 50)
        await until(lambda: not router.fleet[fleet.addresses[0]].running)
        frames = 0
        while not all(isinstance(recorder.last, Finished) for recorder in deaf):
            opened.receive(events_of((await call.read()).frame))
            frames += 1
        call.cancel()
    assert frames < FRAMES
    for number, recorder in enumerate(deaf):
        assert recorder.ids == oracle((number, 2), TOKENS)
        merged = [len(event.ids) for event in recorder.events if isinstance(event, Tokens)]
        assert max(merged) > FRAMES


async def test_of_5000_at_once_those_that_may_wait_are_served_and_the_others_told_when() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    service = ServiceSettings(queue=QueueSettings(max_waiting=PLACES, slots=64))
    async with (
        servers(*engines, plays=False) as fleet,
        router_over(fleet.addresses, service=service) as (router, session),
    ):
        recorders = send(session, CALLERS)
        await until(lambda: sum(recorder.last is not None for recorder in recorders) == REFUSED)
        assert router.relay.load().waiting == PLACES
        for recorder in recorders:
            if isinstance(recorder.last, Failed):
                assert (recorder.last.code, recorder.last.retryable) == (
                    Code.RESOURCE_EXHAUSTED,
                    True,
                )
                assert recorder.last.retry_after_s is not None
                assert recorder.last.retry_after_s >= 1
        async with playing(engines[0].source), playing(engines[1].source):
            for number, recorder in enumerate(recorders):
                if isinstance(await recorder.ended(), Finished):
                    assert recorder.ids == oracle((number, 1), 4)
        served = sum(isinstance(recorder.last, Finished) for recorder in recorders)
        assert served == CALLERS - REFUSED
        assert router.relay.load().waiting == 0
