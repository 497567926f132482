"""Runs an engine: loads the model, warms up, serves, drains."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.stream.v1 import stream_pb2, stream_pb2_grpc

from services.engine.admission import Admission
from services.engine.block_feed import BlockFeed
from services.engine.engine import Engine
from services.engine.grammar_queue import GrammarQueue
from services.engine.kv.figures import new_figures
from services.engine.liveness import watched
from services.engine.loop import EngineLoop, Results
from services.engine.metrics import EngineMetrics, metrics_served
from services.engine.nvml import DeviceMonitor
from services.engine.parts import Parts
from services.engine.rpc import EngineServicer, Identity
from services.engine.scheduler import Limits, Scheduler
from services.engine.settings import ALIASES, EngineSettings, ExecutorSettings
from services.engine.stopping import Stopper
from services.engine.threads import prepare_threads
from services.shared.announce import announce
from services.shared.drain import drained
from services.shared.health import Readiness
from services.shared.program import Program
from services.shared.server import serving
from services.shared.stop import Stop
from services.shared.stream.load import ReplicaState
from services.shared.stream.servicer import TokenStreamServicer

SERVICES = tuple(
    module.DESCRIPTOR.services_by_name[name].full_name
    for module, name in ((stream_pb2, "TokenStreamService"), (engine_pb2, "EngineService"))
)

LAST_FRAME_S = 0.5
"""How long the ends of the last generations have to reach their callers."""

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    program = Program(name="engine", settings=EngineSettings, aliases=ALIASES, serve=serve)
    return program.run(sys.argv[1:] if argv is None else argv)


async def serve(settings: EngineSettings, stop: Stop) -> None:
    """Serves until it is asked to stop, then drains.

    One thread computes, from the first tensor to the last step: OpenMP keeps a team for each thread
    that asks for one, and with more teams than cores it no longer lets threads spin.
    """
    home = asyncio.get_running_loop()
    computing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="step")
    parts = await home.run_in_executor(computing, _parts, settings.executor)
    await home.run_in_executor(computing, parts.runner.warm_up)
    grammars = None if parts.grammars is None else GrammarQueue(parts.grammars)
    loop, engine = _assembled(parts, settings, grammars)
    metrics = EngineMetrics(loop.progress, new_figures())
    if settings.executor.memory.deterministic_gc:
        loop.collector.freeze()
    thread = home.run_in_executor(computing, loop.run)

    def ended(_: object) -> None:
        """The thread, by a bug unless the process ends: nothing that runs will come to its end."""
        stop.at_once()
        engine.break_off()

    thread.add_done_callback(ended)
    try:
        async with (
            serving(
                settings.server.address,
                _register(engine, BlockFeed(loop), _identity(parts)),
                SERVICES,
                grace_s=LAST_FRAME_S,
            ) as served,
            metrics_served(settings.server.host, settings.metrics.port, metrics) as scraped,
        ):
            engine.state = ReplicaState.READY
            await served.health.set(Readiness.READY)
            announce({"grpc": served.address, **scraped})
            async with watched(loop.progress, served.health, settings.service.limits.stuck_after_s):
                await drained(engine, served.health, stop, settings.service.limits)
    finally:
        if grammars is not None:
            grammars.close()
        loop.command(loop.stop)
        await thread
        _log.info("engine ended", extra={"fields": _figures(loop)})


def _figures(loop: EngineLoop) -> dict[str, int]:
    return {
        "steps": loop.progress.steps,
        "scheduled_us": loop.progress.scheduled_us,
        "gc_pauses": loop.collector.pauses,
        "gc_paused_us": loop.collector.paused_us,
    }


def _assembled(
    parts: Parts, settings: EngineSettings, grammars: GrammarQueue | None
) -> tuple[EngineLoop, Engine]:
    """The loop, and the engine that its results go to on this thread's event loop."""
    home = asyncio.get_running_loop()
    limits = settings.service.limits

    def publish(results: Results) -> None:
        home.call_soon_threadsafe(engine.deliver, results)

    loop = _loop(parts, settings, publish)
    engine = Engine(
        Admission(parts.model, limits.request_timeout_ms),
        loop,
        DeviceMonitor(settings.executor.accelerator_group[0]),
        limits.max_concurrency,
        grammars,
    )
    return loop, engine


def _parts(settings: ExecutorSettings) -> Parts:
    """Imported late: threads are prepared before torch is there, and a simulation needs none."""
    if settings.simulate:
        from services.engine.simulated_parts import simulated_parts  # noqa: PLC0415  # see above

        return simulated_parts(settings)
    prepare_threads(settings.threads)
    from services.engine.model_parts import model_parts  # noqa: PLC0415  # see above

    return model_parts(settings)


def _loop(parts: Parts, settings: EngineSettings, publish: Callable[[Results], None]) -> EngineLoop:
    batching = settings.service.batching
    limits = Limits(max_batch_size=batching.max_batch_size, token_budget=batching.token_budget)
    stopper = Stopper(parts.model.end_of_text_ids, parts.model.context_length)
    return EngineLoop(
        Scheduler(parts.pool, limits),
        parts.runner,
        stopper,
        publish,
        wait_ns=int(batching.max_wait_ms * 1_000_000),
    )


def _identity(parts: Parts) -> Identity:
    return Identity(
        model=parts.model,
        tokenizer_fingerprint=parts.tokenizer_fingerprint,
        block_size=parts.pool.size,
        device=parts.device,
    )


def _register(
    engine: Engine, blocks: BlockFeed, identity: Identity
) -> Callable[[grpc.aio.Server], None]:
    def register(server: grpc.aio.Server) -> None:
        stream_pb2_grpc.add_TokenStreamServiceServicer_to_server(
            TokenStreamServicer(engine, blocks), server
        )
        engine_pb2_grpc.add_EngineServiceServicer_to_server(
            EngineServicer(engine, identity), server
        )

    return register


if __name__ == "__main__":
    sys.exit(main())
