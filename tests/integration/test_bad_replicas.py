"""Replicas that break the protocol: named, contained, and unnoticed by the streams of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from services.router.admission.queue_settings import QueueSettings
from services.router.fleet.health import HealthRules
from services.router.settings import ServiceSettings
from services.router.status import Status
from services.shared.stream.events import Cancel, CancelReason, Finished
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.recorder import Recorder, submission
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.meddling import (
    Meddle,
    Meddling,
    repeat_a_position,
    skip_a_position,
    speak_of_a_stranger,
)
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import ScriptedSource, oracle
from tests.stream_server import client
from tests.waiting import until

RULES = HealthRules(
    degraded_after_s=1.5, stuck_after_s=2, ejection_s=60, probe_interval_s=0.5, probe_timeout_s=1
)
MANY = 500
LONG = tuple(range(5000))
RARELY_PROBED = ServiceSettings(health=replace(RULES, probe_interval_s=3600))


def meddling(meddle: Meddle) -> ScriptedEngine:
    source = ScriptedSource()
    return ScriptedEngine(source=source, door=Meddling(source, meddle))


async def whole(recorders: list[Recorder], max_tokens: int) -> None:
    """All outputs come to their end, exact."""
    for number, recorder in enumerate(recorders):
        assert isinstance(await recorder.ended(), Finished)
        assert recorder.ids == oracle((number, 1), max_tokens)
        assert recorder.accepted() == 1


@pytest.mark.parametrize(
    ("meddle", "told"),
    [
        (skip_a_position, "sent position 2 instead of 1"),
        (repeat_a_position, "sent position 0 instead of 1"),
    ],
)
async def test_a_replica_that_skips_or_repeats_positions_loses_those_streams_and_then_all(
    meddle: Callable[..., None], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    engines = [meddling(meddle), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        router_over(fleet.addresses, service=RARELY_PROBED) as (router, session),
    ):
        await whole(send(session, 32, max_tokens=20), 20)
        bad = router.fleet[fleet.addresses[0]]
        assert (bad.status, bad.health.ejection.cause) == (Status.EJECTED, "failures")
        assert router.fleet.ready() == [fleet.addresses[1]]
        given = bad.assigned
        await whole(send(session, 8), 4)
        assert bad.assigned == given
    assert f"{fleet.addresses[0]} {told}" in caplog.text
    assert f"{fleet.addresses[0]} is ejected: failures" in caplog.text
    assert f"{fleet.addresses[1]} sent" not in caplog.text


async def test_a_replica_that_speaks_of_streams_it_was_never_sent_harms_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engines = [meddling(speak_of_a_stranger), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        router_over(fleet.addresses, service=RARELY_PROBED) as (_, session),
    ):
        await whole(send(session, 32, max_tokens=20), 20)
    fault = f"{fleet.addresses[0]} sent events of stream 10000, which it was never sent"
    assert caplog.messages.count(fault) == 1


@dataclass
class Obstinate(ScriptedSource):
    """Goes on with what is cancelled."""

    def submit(self, submission: Submission) -> Cancel:
        super().submit(submission)

        def cancel(reason: CancelReason) -> None:
            self.cancelled.append((submission.generation.request_id, reason))

        return cancel


async def test_a_replica_that_answers_after_a_cancel_is_not_heard() -> None:
    engines = [ScriptedEngine(source=Obstinate()), ScriptedEngine()]
    async with servers(*engines) as fleet, router_over(fleet.addresses) as (router, session):
        cancelled = [Recorder() for _ in range(8)]
        cancels = [
            session.submit(submission(f"c{number}", recorder, max_tokens=200))
            for number, recorder in enumerate(cancelled)
        ]
        recorders = send(session, 8, max_tokens=200)
        await until(lambda: all(recorder.ids for recorder in (*cancelled, *recorders)))
        for cancel in cancels:
            cancel(CancelReason.STOP_TEXT)
        counts = [len(recorder.events) for recorder in cancelled]
        await whole(recorders, 200)
        await until(lambda: not engines[0].source.running)
        assert len(engines[0].source.cancelled) == 4
        assert [len(recorder.events) for recorder in cancelled] == counts
        await until(lambda: not router.fleet[fleet.addresses[0]].running)
        assert {one.status for one in router.fleet} == {Status.READY}


async def test_a_replica_that_stops_reading_is_found_by_probes_and_its_streams_go_on_elsewhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = ScriptedSource()
    door = Meddling(source)
    engines = [ScriptedEngine(source=source, door=door), ScriptedEngine()]
    service = ServiceSettings(health=RULES, queue=QueueSettings(slots=8))
    async with (
        servers(*engines) as fleet,
        router_over(fleet.addresses, service=service) as (router, session),
    ):
        deaf = router.fleet[fleet.addresses[0]]
        door.listens.clear()
        recorders = send(session, 50, max_tokens=20)
        impatient = [Recorder() for _ in range(250)]
        for number, recorder in enumerate(impatient):
            session.submit(submission(f"i{number}", recorder, max_tokens=20, timeout_ms=50))
        await whole(recorders, 20)
        assert (deaf.status, deaf.running) == (Status.EJECTED, 0)
        for recorder in impatient:
            await recorder.ended()
    assert f"{deaf.name} is ejected: failed probes" in caplog.text
    assert f"{fleet.addresses[1]} is ejected" not in caplog.text


async def test_what_is_taken_back_does_not_wait_for_a_replica_that_does_not_read() -> None:
    source = ScriptedSource()
    door = Meddling(source)
    engine = ScriptedEngine(source=source, door=door)
    async with servers(engine) as fleet, client(fleet.addresses[0]) as session:
        (first,) = send(session, 1)
        await first.ended()
        door.listens.clear()
        cancels = [
            session.submit(submission(f"i{number}", Recorder(), prompt_ids=LONG))
            for number in range(MANY)
        ]
        for cancel in cancels:
            cancel(CancelReason.DEADLINE)
        last = Recorder()
        session.submit(submission("last", last))
        door.listens.set()
        await last.ended()
    assert sum(one.HasField("submit") for one in door.heard) < MANY / 2


@dataclass
class Boastful(ScriptedSource):
    """Tells of endless room and of nothing to do."""

    def load(self) -> Load:
        return Load(state=self.state, slots=2**31, free_blocks=2**31, total_blocks=2**31)


async def test_a_replica_that_boasts_is_given_no_more_than_its_share() -> None:
    engines = [ScriptedEngine(source=Boastful()), ScriptedEngine()]
    async with (
        servers(*engines, plays=False) as fleet,
        router_over(fleet.addresses) as (_, session),
    ):
        send(session, 64, max_tokens=1000)
        await until(lambda: sum(len(engine.source.running) for engine in engines) == 64)
        assert [len(engine.source.running) for engine in engines] == [32, 32]
