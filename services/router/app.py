"""A router from its settings: connections, relay, server, and their end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import grpc
from tokenway.engine.v1 import engine_pb2_grpc
from tokenway.stream.v1 import stream_pb2_grpc

from services.router.admission import Admission
from services.router.connection import Connection
from services.router.fleet import Fleet, FleetRules
from services.router.journal import SpanJournal
from services.router.relay import Relay
from services.router.retry_budget import RetryBudget
from services.router.rpc import FleetServicer
from services.router.settings import RouterSettings
from services.router.watch import watching
from services.shared.health import Health, Readiness
from services.shared.server import serving
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.tasks import Tasks

SERVICES = ("tokenway.stream.v1.TokenStreamService", "tokenway.engine.v1.EngineService")
LAST_FRAME_S = 0.5
"""How long the ends of the last generations have to reach their callers."""

CRASH_PAUSE_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Router:
    """A router that serves."""

    address: str
    relay: Relay
    fleet: Fleet
    health: Health


@asynccontextmanager
async def routing(settings: RouterSettings) -> AsyncIterator[Router]:
    """Serves inside the block; drain the relay before its end.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    changed = asyncio.Event()
    changed.set()
    clock = asyncio.get_running_loop()
    fleet = Fleet(clock, FleetRules(health=settings.service.health), changed.set)
    admission = Admission(fleet)
    budget = RetryBudget(settings.service.retry)
    relay = Relay(fleet, admission, clock, SpanJournal(), changed.set, budget=budget)
    fleet.evacuate = relay.evacuate
    async with AsyncExitStack() as stack:
        connections = [Connection(address, fleet) for address in settings.replicas]
        for connection in connections:
            stack.push_async_callback(connection.close)
        door = await stack.enter_async_context(
            serving(
                settings.server.address,
                _registering(relay, FleetServicer(relay, fleet, connections)),
                SERVICES,
                grace_s=LAST_FRAME_S,
            )
        )
        stack.enter_context(watching(fleet, clock))
        tasks = await stack.enter_async_context(_supervised(connections))
        tasks.start("readiness", _readiness(changed, fleet, relay, door.health))
        yield Router(address=door.address, relay=relay, fleet=fleet, health=door.health)


def _registering(relay: Relay, servicer: FleetServicer) -> Callable[[grpc.aio.Server], None]:
    def register(server: grpc.aio.Server) -> None:
        stream_pb2_grpc.add_TokenStreamServiceServicer_to_server(TokenStreamServicer(relay), server)
        engine_pb2_grpc.add_EngineServiceServicer_to_server(servicer, server)

    return register


@asynccontextmanager
async def _supervised(connections: list[Connection]) -> AsyncIterator[Tasks]:
    """Runs the connections; one that crashes fails alone and is begun again."""
    by_name = {connection.address: connection for connection in connections}

    def again(name: str, _: Exception) -> None:
        if name in by_name:
            tasks.start(name, _run_later(by_name[name]))

    async with Tasks(again) as tasks:
        for name, connection in by_name.items():
            tasks.start(name, connection.run())
        yield tasks


async def _run_later(connection: Connection) -> None:
    await asyncio.sleep(CRASH_PAUSE_S)
    await connection.run()


async def _readiness(changed: asyncio.Event, fleet: Fleet, relay: Relay, health: Health) -> None:
    """Tells READY only while a replica takes generations and the router does."""
    while True:
        await changed.wait()
        changed.clear()
        ready = fleet.ready()
        if relay.draining:
            readiness = Readiness.DRAINING
        else:
            readiness = Readiness.READY if ready else Readiness.STARTING
        if readiness is not health.readiness:
            _log.info("router is %s; ready replicas: %s", readiness.value, ", ".join(ready))
            await health.set(readiness)
