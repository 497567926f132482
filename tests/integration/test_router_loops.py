"""Routers that are replicas of themselves, on one way or another: found, named and left alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.router.app import Router, routing
from services.router.replica_spec import ReplicaSpec
from services.router.security_settings import RouterSecurity
from services.router.settings import DiscoverySettings, RouterSettings
from services.router.status import Status
from services.shared.settings import ServerSettings
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Failed, Finished
from tests.router.fleet_of_servers import send, servers
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import oracle
from tests.stream_server import client
from tests.waiting import until


@dataclass(frozen=True, kw_only=True)
class Node:
    """A router that can be given more replicas while it runs."""

    router: Router
    session: ClientSession
    file: Path

    @property
    def address(self) -> str:
        return self.router.address

    def add(self, *nodes: Node) -> None:
        write(self.file, *(one.address for one in nodes))

    def status(self, replica: Node) -> Status | None:
        known = {one.name: one.status for one in self.router.fleet}
        return known.get(replica.address)

    async def serves(self) -> None:
        """Streams that come to it are exact."""
        for number, recorder in enumerate(send(self.session, 4)):
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 4)

    async def serves_not(self) -> None:
        """Streams that come to it fail at once."""
        for recorder in send(self.session, 4):
            failed = await recorder.ended()
            assert isinstance(failed, Failed)
            assert failed.message.startswith("no replica can take the generation")


def write(file: Path, *addresses: str) -> None:
    file.write_text(f"replicas: [{', '.join(addresses)}]", "utf-8")


@asynccontextmanager
async def node(file: Path, *addresses: str) -> AsyncIterator[Node]:
    """Over replicas of which one is ready, if there are any."""
    write(file)
    settings = RouterSettings(
        replicas=tuple(map(ReplicaSpec.parse, addresses)),
        discovery=DiscoverySettings(file=file, interval_s=0.05),
        server=ServerSettings(port=0, host="127.0.0.1"),
        security=RouterSecurity(mtls=False),
    )
    async with routing(settings) as router, client(router.address) as session:
        await until(lambda: router.fleet.ready() or not addresses)
        yield Node(router=router, session=session, file=file)


async def test_a_router_is_no_replica_of_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = ScriptedEngine()
    async with (
        servers(engine) as fleet,
        node(tmp_path / "a.yaml", *fleet.addresses) as a,
    ):
        a.add(a)
        await until(lambda: a.status(a) is Status.LOOPED)
        await a.serves()
        assert len(engine.source.submitted) == 4
        await fleet.kill(0)
        await until(lambda: not a.router.fleet.ready())
        await a.serves_not()
    assert f"{a.address} is a way back to this router" in caplog.text


@pytest.mark.parametrize("length", [2, 3])
async def test_a_ring_of_routers_is_open_at_one_place(tmp_path: Path, length: int) -> None:
    engine = ScriptedEngine()
    async with servers(engine) as fleet, node(tmp_path / "a.yaml", *fleet.addresses) as a:
        if length == 2:
            async with node(tmp_path / "b.yaml", a.address) as last:
                await close(a, last, engine)
        else:
            async with (
                node(tmp_path / "b.yaml", a.address) as b,
                node(tmp_path / "c.yaml", b.address) as last,
            ):
                await close(a, last, engine)
                await b.serves()


async def close(a: Node, last: Node, engine: ScriptedEngine) -> None:
    """The first, whose engine all stand for, is given the last as a replica."""
    a.add(last)
    await until(lambda: a.status(last) is Status.LOOPED)
    sent = len(engine.source.submitted)
    await a.serves()
    await last.serves()
    assert len(engine.source.submitted) == sent + 8


async def test_routers_that_become_each_others_replicas_serve_by_their_own_engines(
    tmp_path: Path,
) -> None:
    engines = [ScriptedEngine(), ScriptedEngine()]
    async with (
        servers(*engines) as fleet,
        node(tmp_path / "a.yaml", fleet.addresses[0]) as a,
        node(tmp_path / "b.yaml", fleet.addresses[1]) as b,
    ):
        a.add(b)
        b.add(a)
        await until(lambda: Status.LOOPED in (a.status(b), b.status(a)))
        await a.serves()
        await b.serves()
        assert sum(len(engine.source.submitted) for engine in engines) == 8
        await fleet.kill_all()
        await until(lambda: not a.router.fleet.ready() and not b.router.fleet.ready())
        await a.serves_not()
        await b.serves_not()
