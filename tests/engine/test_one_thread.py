"""The service computes on one thread, so that OpenMP keeps one team."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.engine import __main__ as service
from services.engine.parts import Parts
from services.engine.runner import Draw
from services.engine.scheduler import Work
from services.engine.settings import (
    EngineSettings,
    ExecutorSettings,
    MemorySettings,
)
from services.shared.model_folder import ModelFolder
from services.shared.settings import ServerSettings
from services.shared.stop import Stop
from services.shared.tls.settings import MeshSettings
from tests.engine.harness import simulated


class Watched:
    """A runner that remembers who called it."""

    drawn_ns = 0

    def __init__(self, parts: Parts, threads: set[int]) -> None:
        self._inner = parts.runner
        self._threads = threads

    def warm_up(self) -> None:
        self._threads.add(threading.get_ident())

    def run(self, works: Sequence[Work]) -> list[Draw]:
        self._threads.add(threading.get_ident())
        return self._inner.run(works)


async def test_loading_warm_up_and_steps_share_a_thread(
    model_folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    doors: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    def parts_of(_: ExecutorSettings) -> Parts:
        threads.add(threading.get_ident())
        parts = simulated()
        return replace(parts, runner=Watched(parts, threads))

    monkeypatch.setattr(service, "_parts", parts_of)
    monkeypatch.setattr(service, "announce", doors.set_result)
    # Collection that never comes back would outlive this test.
    memory = MemorySettings(deterministic_gc=False)
    settings = EngineSettings(
        executor=ExecutorSettings(model_path=model_folder.path, memory=memory),
        server=ServerSettings(port=0),
        security=MeshSettings(mtls=False),
    )
    stop = Stop()
    serving = asyncio.ensure_future(service.serve(settings, stop))
    async with grpc.aio.insecure_channel((await doors)["grpc"]) as channel:
        stream = rpc.TokenStreamServiceStub(channel)
        request = pb.GenerateRequest(request_id="r", prompt_ids=[5])
        request.stopping.max_tokens = 3
        assert len([event async for event in stream.Generate(request)]) >= 2
    stop.at_once()
    await serving
    assert len(threads) == 1
    assert threading.get_ident() not in threads
