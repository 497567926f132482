"""Replicas come and go while a router runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.router.app import Router, routing
from services.router.demand import Lane
from services.router.security_settings import RouterSecurity
from services.router.settings import DiscoverySettings, RouterSettings
from services.shared.settings import ServerSettings
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Finished
from tests.router.fleet_of_servers import send, servers
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import oracle
from tests.stream_server import client
from tests.waiting import until


def name(file: Path, replicas: Sequence[object]) -> None:
    """Writes the file whole, as an operator's tool would."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"replicas": list(replicas)}))
    new.rename(file)


@asynccontextmanager
async def router_with(file: Path) -> AsyncIterator[tuple[Router, ClientSession]]:
    settings = RouterSettings(
        discovery=DiscoverySettings(file=file, interval_s=0.05),
        server=ServerSettings(port=0, host="127.0.0.1"),
        security=RouterSecurity(mtls=False),
    )
    async with routing(settings) as router, client(router.address) as session:
        yield router, session


async def test_a_replica_that_is_named_later_takes_its_part(tmp_path: Path) -> None:
    file = tmp_path / "replicas.yaml"
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with servers(*engines) as fleet:
        name(file, fleet.addresses[:1])
        async with router_with(file) as (router, session):
            await until(lambda: router.fleet.ready() == fleet.addresses[:1])
            name(file, fleet.addresses)
            await until(lambda: router.fleet.ready() == fleet.addresses)
            for recorder in send(session, 8):
                assert isinstance(await recorder.ended(), Finished)
    assert all(engine.source.submitted for engine in engines)


async def test_a_replica_that_is_named_no_more_hands_its_streams_over(tmp_path: Path) -> None:
    file = tmp_path / "replicas.yaml"
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with servers(*engines, plays=False) as fleet:
        name(file, fleet.addresses[:1])
        async with router_with(file) as (router, session):
            await until(lambda: router.fleet.ready() == fleet.addresses[:1])
            (recorder,) = send(session, 1)
            await until(lambda: engines[0].source.running)
            for _ in range(3):
                engines[0].source.step()
            await until(lambda: len(recorder.ids) == 2)
            name(file, fleet.addresses[1:])
            await until(lambda: engines[1].source.running)
            for _ in range(5):
                engines[1].source.step()
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((0, 1), 4)
            await until(lambda: [one.name for one in router.fleet] == fleet.addresses[1:])


async def test_weight_and_pool_follow_the_file(tmp_path: Path) -> None:
    file = tmp_path / "replicas.yaml"
    async with servers(ScriptedEngine()) as fleet:
        (address,) = fleet.addresses
        name(file, [{"address": address, "weight": 2}])
        async with router_with(file) as (router, _):
            await until(lambda: router.fleet.ready() == [address])
            replica = router.fleet[address]
            assert replica.weight == 2
            router.fleet.set_weight(address, 7)
            name(file, [{"address": address, "weight": 2, "pool": "long"}])
            await until(lambda: replica.lanes == {Lane.LONG})
            assert replica.weight == 7
            name(file, [{"address": address, "weight": 3, "pool": "long"}])
            await until(lambda: replica.weight == 3)


async def test_a_router_that_ends_tells_of_no_lost_replica(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "replicas.yaml"
    async with servers(ScriptedEngine()) as fleet:
        name(file, fleet.addresses)
        async with router_with(file) as (router, _):
            await until(lambda: router.fleet.ready() == fleet.addresses)
            caplog.clear()
    assert "gone" not in caplog.text
