"""Health of replicas on loopback: silence, flapping, lies, failures, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from services.router.app import Router, routing
from services.router.fleet.health import HealthRules
from services.router.replica_spec import ReplicaSpec
from services.router.security_settings import RouterSecurity
from services.router.settings import RouterSettings, ServiceSettings
from services.router.status import Status
from services.shared.errors import Unavailable
from services.shared.settings import ServerSettings
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Finished
from services.shared.stream.load import Load
from tests.recorder import Recorder, submission
from tests.router.fleet_of_servers import servers
from tests.router.pausing_proxy import pausing_proxy
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import ScriptedSource, oracle
from tests.stream_server import client
from tests.waiting import until

QUICK = HealthRules(
    degraded_after_s=1.5, stuck_after_s=2, ejection_s=0.5, probe_interval_s=0.5, probe_timeout_s=1
)
SLOW_TO_PROBE = replace(QUICK, probe_interval_s=3600)


@asynccontextmanager
async def router_with(
    rules: HealthRules, addresses: list[str]
) -> AsyncIterator[tuple[Router, ClientSession]]:
    """A router that judges by `rules`, all its replicas up, and a session to it."""
    settings = RouterSettings(
        replicas=tuple(map(ReplicaSpec.parse, addresses)),
        server=ServerSettings(port=0, host="127.0.0.1"),
        service=ServiceSettings(health=rules),
        security=RouterSecurity(mtls=False),
    )
    async with routing(settings) as router:
        await until(lambda: all(one.identity is not None for one in router.fleet))
        async with client(router.address) as session:
            yield router, session


async def run_one(session: ClientSession, name: str) -> None:
    """A generation that must come whole, wherever it goes."""
    recorder = Recorder()
    session.submit(submission(name, recorder, prompt_ids=(1, 2)))
    assert isinstance(await recorder.ended(), Finished)
    assert recorder.ids == oracle((1, 2), 4)


async def test_a_replica_that_says_nothing_is_stuck_its_streams_go_on_and_it_comes_back() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        pausing_proxy(fleet.addresses[0]) as (proxy, address),
        router_with(SLOW_TO_PROBE, [address, fleet.addresses[1]]) as (router, session),
    ):
        recorders = [Recorder() for _ in range(8)]
        for number, recorder in enumerate(recorders):
            session.submit(submission(f"x{number}", recorder, max_tokens=300))
        await until(lambda: all(recorder.ids for recorder in recorders))
        assert router.fleet[address].running
        proxy.flows.clear()
        await until(lambda: router.fleet[address].status is Status.STUCK)
        assert router.fleet[address].reason == "silent for 2 s"
        for recorder in recorders:
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((1, 2, 3), 300)
        proxy.flows.set()
        await until(lambda: router.fleet[address].status is Status.READY)


async def test_a_replica_that_refuses_is_ejected_and_back_only_after_a_probe_passed() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        router_with(SLOW_TO_PROBE, fleet.addresses) as (router, session),
    ):
        bad = router.fleet[fleet.addresses[0]]
        engines[0].source.refuse = Unavailable("out of order")
        for number in range(99):
            await run_one(session, f"x{number}")
            if bad.status is Status.EJECTED:
                break
        assert bad.status is Status.EJECTED
        until_first = bad.health.ejection.until
        await until(lambda: bad.health.ejection.until != until_first)  # a probe was refused
        assert not engines[0].source.submitted
        engines[0].source.refuse = None
        await until(lambda: bad.status is Status.READY)
        assert [one.generation.request_id for one in engines[0].source.submitted] == ["probe"]


async def test_a_replica_that_says_ready_and_answers_nothing_is_ejected_by_probes() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with (
        servers(engines[0], plays=False) as able,
        servers(engines[1]) as other,
        router_with(QUICK, [*able.addresses, *other.addresses]) as (router, session),
    ):
        unable = router.fleet[able.addresses[0]]
        await until(lambda: unable.status is Status.DEGRADED)
        await until(lambda: unable.status is Status.EJECTED)
        assert unable.reason.startswith("failed probes; ")
        await run_one(session, "x")
        assert all(one.generation.request_id == "probe" for one in engines[0].source.submitted)


async def test_no_more_than_the_share_are_ejected_though_all_fail() -> None:
    engines = [ScriptedEngine() for _ in range(3)]
    async with (
        servers(*engines, plays=False) as fleet,
        router_with(QUICK, fleet.addresses) as (router, _),
    ):
        await until(
            lambda: any(one.reason.endswith("too many are ejected") for one in router.fleet)
        )
        statuses = [one.status for one in router.fleet]
        assert statuses.count(Status.EJECTED) <= 1
        assert len(router.fleet.ready()) >= 2


async def test_a_replica_that_comes_and_goes_is_ejected() -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        router_with(replace(SLOW_TO_PROBE, ejection_s=60), fleet.addresses) as (router, session),
    ):
        flapping = router.fleet[fleet.addresses[0]]
        for number in range(3):
            await until(lambda: flapping.status is Status.READY)
            await fleet.kill(0)
            await until(lambda: flapping.status is Status.GONE)
            await fleet.start(0)
            await run_one(session, f"x{number}")
        await until(lambda: flapping.status is Status.EJECTED)
        assert flapping.reason == "sessions that did not last; its time is not over"


@dataclass
class LyingSource(ScriptedSource):
    """Tells of more free blocks than it has, and of nothing to do."""

    def load(self) -> Load:
        return Load(state=self.state, free_blocks=2**31, total_blocks=8)


async def test_a_replica_that_lies_about_its_load_is_named_once_and_draws_no_traffic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engines = [ScriptedEngine(source=LyingSource()), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        router_with(SLOW_TO_PROBE, fleet.addresses) as (router, session),
    ):
        for number in range(8):
            await run_one(session, f"x{number}")
        liar = router.fleet[fleet.addresses[0]]
        assert liar.status is Status.READY
        assert liar.expected_tokens is None
        epoch = liar.health.heard_at
        await until(lambda: liar.health.heard_at > epoch)
    told = [one.message for one in caplog.records if "cannot be" in one.message]
    lie = "tells a load that cannot be: 2147483648 free and cached of 8 blocks"
    assert told == [f"{fleet.addresses[0]} {lie}"]
    assert not engines[0].source.submitted
