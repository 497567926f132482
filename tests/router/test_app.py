"""A bug on the way to one replica leaves the others alone."""

from __future__ import annotations

import pytest

from services.router.connections import membership
from services.router.connections.connection import Connection
from services.shared.stream.events import Finished
from tests.router.fleet_of_servers import router_over, send, servers
from tests.router.servicer import ScriptedEngine
from tests.waiting import until


async def test_a_connection_that_crashes_is_begun_again_and_its_neighbours_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crashes = [KeyError("a bug")]
    run = Connection.run

    async def run_with_a_bug(self: Connection) -> None:
        if crashes and self.address == fleet.addresses[0]:
            raise crashes.pop()
        await run(self)

    monkeypatch.setattr(membership, "CRASH_PAUSE_S", 0.05)
    monkeypatch.setattr(Connection, "run", run_with_a_bug)
    async with (
        servers(ScriptedEngine(), ScriptedEngine()) as fleet,
        router_over(fleet.addresses, ready=1) as (router, session),
    ):
        assert router.fleet.ready() == [fleet.addresses[1]]
        for recorder in send(session, 4):
            assert isinstance(await recorder.ended(), Finished)
        await until(lambda: len(router.fleet.ready()) == 2)
    assert f"task {fleet.addresses[0]} crashed" in caplog.text
