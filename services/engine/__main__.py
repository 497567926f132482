"""Runs an engine: loads the model, warms up, serves, drains."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from services.engine.assembly import SERVICES, Assembly, assembled
from services.engine.followed_switch import followed_switch, switched_by
from services.engine.freed_memory import keep_freed_memory
from services.engine.liveness import watched
from services.engine.loop import EngineLoop
from services.engine.metrics import collectors_of
from services.engine.parts import Parts
from services.engine.settings import ALIASES, EngineSettings, ExecutorSettings
from services.engine.threads import prepare_threads
from services.shared.announce import announce
from services.shared.drain import drained
from services.shared.grpc_traffic import TrafficMeter
from services.shared.health import Readiness
from services.shared.mesh.mesh import Mesh
from services.shared.mesh.opening import meshing
from services.shared.mesh.rules import RULES
from services.shared.process_metrics import Process, metrics_served
from services.shared.program import Program, config_file
from services.shared.server import serving
from services.shared.stop import Stop
from services.shared.stream.load import ReplicaState
from services.shared.tls.identity import Role, server_name

LAST_FRAME_S = 0.5
"""How long the ends of the last generations have to reach their callers."""

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    start = partial(serve, path=config_file("engine", arguments))
    program = Program(name="engine", settings=EngineSettings, aliases=ALIASES, serve=start)
    return program.run(arguments)


async def serve(settings: EngineSettings, stop: Stop, path: Path | None = None) -> None:
    """Serves until it is asked to stop, then drains; follows the switch in the file at `path`.

    One thread computes, from the first tensor to the last step: OpenMP keeps a team for each thread
    that asks for one, and with more teams than cores it no longer lets threads spin.
    """
    async with meshing(settings.security, Role.ENGINE, settings.server.host) as mesh:
        await _run(settings, stop, path, mesh)


async def _run(settings: EngineSettings, stop: Stop, path: Path | None, mesh: Mesh) -> None:
    keep_freed_memory()
    switch = None if path is None else followed_switch(path)
    home = asyncio.get_running_loop()
    computing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="step")
    parts = await home.run_in_executor(computing, _parts, settings.executor)
    await home.run_in_executor(computing, parts.runner.warm_up)
    async with assembled(parts, settings, mesh.way(server_name(Role.ENGINE))) as assembly:
        engine, loop = assembly.engine, assembly.loop
        if settings.executor.memory.deterministic_gc:
            loop.collector.take_over()
        thread = home.run_in_executor(computing, loop.run)

        def ended(_: object) -> None:
            """The thread, by a bug unless the process ends: what runs will come to no end."""
            stop.at_once()
            engine.break_off()

        thread.add_done_callback(ended)
        try:
            async with switched_by(switch, assembly.caches):
                await _serve(assembly, settings, stop, mesh)
        finally:
            loop.command(loop.stop)
            await thread
            _log.info("engine ended", extra={"fields": _figures(loop)})


async def _serve(assembly: Assembly, settings: EngineSettings, stop: Stop, mesh: Mesh) -> None:
    """Serves an engine whose loop runs, until it has drained."""
    engine, limits, progress = assembly.engine, settings.service.limits, assembly.loop.progress
    server = settings.server
    process = Process(service="engine", mesh=mesh)
    async with (
        serving(
            server.address,
            assembly.register,
            SERVICES,
            grace_s=LAST_FRAME_S,
            credentials=mesh.server,
            guards=[TrafficMeter(process.traffic), *mesh.guards(RULES)],
        ) as served,
        metrics_served(
            server.host, settings.metrics.port, process, *collectors_of(assembly)
        ) as scraped,
    ):
        engine.state = ReplicaState.READY
        await served.health.set(Readiness.READY)
        announce({"grpc": served.address, **scraped})
        async with watched(progress, served.health, limits.stuck_after_s):
            await drained(engine, served.health, stop, limits)
            assembly.caches.lending.leave()


def _figures(loop: EngineLoop) -> dict[str, int]:
    return {
        "steps": loop.progress.steps,
        "scheduled_us": loop.progress.scheduled_us,
        "gc_pauses": loop.collector.pauses,
        "gc_paused_us": loop.collector.paused_us,
    }


def _parts(settings: ExecutorSettings) -> Parts:
    """Imported late: threads are prepared before torch is there, and a simulation needs none."""
    if settings.simulate:
        from services.engine.simulated_parts import simulated_parts  # noqa: PLC0415  # see above

        return simulated_parts(settings)
    prepare_threads(settings.threads)
    from services.engine.model_parts import model_parts  # noqa: PLC0415  # see above

    return model_parts(settings)


if __name__ == "__main__":
    sys.exit(main())
