"""A connection with certificates ends some time, and a session that moves does not notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared import server
from services.shared.mesh import certified_mesh
from services.shared.mesh.opening import meshing
from services.shared.server import serving
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Finished
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.tls.identity import STREAM_NAME, Role
from services.shared.tls.way import Way
from tests.mesh_bed import Certified
from tests.recorder import Recorder, submission
from tests.scripted_source import ScriptedSource, oracle
from tests.stream_server import SERVICE, Watched, playing
from tests.waiting import until


def ending(monkeypatch: pytest.MonkeyPatch, age_ms: int, grace_ms: int) -> None:
    """Servers end connections so soon."""
    ages = (
        ("grpc.max_connection_age_ms", age_ms),
        ("grpc.max_connection_age_grace_ms", grace_ms),
    )
    monkeypatch.setattr(server, "AGING_OPTIONS", ages)


@asynccontextmanager
async def door(certified: Certified, source: ScriptedSource) -> AsyncIterator[str]:
    def register(to: grpc.aio.Server) -> None:
        rpc.add_TokenStreamServiceServicer_to_server(TokenStreamServicer(source), to)

    credentials = certified.server(Role.ENGINE)
    async with serving(
        "127.0.0.1:0", register, [SERVICE], grace_s=0, credentials=credentials
    ) as it:
        yield it.address


@asynccontextmanager
async def session_to(address: str, way: Way, watched: Watched) -> AsyncIterator[ClientSession]:
    session = ClientSession(way, address, watched)
    running = asyncio.ensure_future(session.run())
    try:
        await watched.until(1)
        yield session
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await session.close()


async def test_who_stays_on_an_old_connection_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending(monkeypatch, 100, 100)
    certified, watched = Certified(tmp_path), Watched()
    way = certified.way(Role.CODEC, STREAM_NAME)
    async with door(certified, ScriptedSource()) as address, session_to(address, way, watched):
        await until(lambda: None in watched.loads)


async def test_a_session_moves_before_its_server_cuts_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    ending(monkeypatch, 400, 60_000)
    monkeypatch.setattr(certified_mesh, "CONNECTION_AGE_S", 0.4)
    certified, watched, source = Certified(tmp_path), Watched(), ScriptedSource()

    def moves() -> int:
        return sum(message.startswith("new connection to") for message in caplog.messages)

    async with (
        meshing(certified.settings(Role.CODEC), Role.CODEC, "127.0.0.1") as mesh,
        door(certified, source) as address,
        playing(source),
        session_to(address, mesh.way(STREAM_NAME), watched) as session,
    ):
        number = 0
        while moves() < 4:
            number += 1
            recorder = Recorder()
            session.submit(submission("x", recorder, prompt_ids=(number, 1), max_tokens=20))
            assert isinstance(await recorder.ended(), Finished)
            assert recorder.ids == oracle((number, 1), 20)
        assert None not in watched.loads
