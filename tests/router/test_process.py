"""The router as a process: starts, is told to stop, and stops without loss."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from services.shared.stream.events import Failed, Finished
from tests.recorder import Recorder, submission
from tests.router.fleet_of_servers import servers
from tests.router.router_process import address_of, config, router_process
from tests.router.servicer import ScriptedEngine
from tests.scripted_source import oracle
from tests.stream_server import Watched, client
from tests.waiting import PATIENCE_S, until


async def test_sigterm_lets_running_generations_finish_and_exits_clean(tmp_path: Path) -> None:
    engine, watched = ScriptedEngine(), Watched()
    async with (
        servers(engine, plays=False) as fleet,
        router_process("--config", config(tmp_path, fleet.addresses)) as process,
        client(await address_of(process), watched) as session,
    ):
        while watched.loads[-1] is None or watched.loads[-1].state.name != "READY":
            await watched.until(len(watched.loads) + 1)
        running, refused = Recorder(), Recorder()
        session.submit(submission("running", running))
        await until(lambda: engine.source.running)
        process.send_signal(signal.SIGTERM)
        while watched.loads[-1] is None or watched.loads[-1].state.name != "DRAINING":
            await watched.until(len(watched.loads) + 1)
        session.submit(submission("refused", refused))
        failed = await refused.ended()
        assert isinstance(failed, Failed)
        assert failed.retryable
        for _ in range(6):
            engine.source.step()
        assert isinstance(await running.ended(), Finished)
        assert running.ids == oracle((1, 2, 3), 4)
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


async def test_a_drain_is_bounded(tmp_path: Path) -> None:
    engine, watched = ScriptedEngine(), Watched()
    async with (
        servers(engine, plays=False) as fleet,
        router_process(
            "--config", config(tmp_path, fleet.addresses, drain_timeout_s=0.05)
        ) as process,
        client(await address_of(process), watched) as session,
    ):
        while watched.loads[-1] is None or watched.loads[-1].state.name != "READY":
            await watched.until(len(watched.loads) + 1)
        running = Recorder()
        session.submit(submission("running", running))
        await until(lambda: engine.source.running)
        process.send_signal(signal.SIGTERM)
        failed = await running.ended()
        assert isinstance(failed, Failed)
        assert (failed.message, failed.retryable) == ("the router is leaving", True)
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


async def test_settings_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    for replicas, told in (
        ([], b"replicas must name at least one host:port"),
        (["host"], b"replicas[0].address must be host:port with port 1 to 65535, got host"),
        (["a:1", "a:1"], b"replicas must differ"),
    ):
        async with router_process("--config", config(tmp_path, replicas)) as process:
            _, stderr = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert told in stderr
            assert process.returncode == 2
