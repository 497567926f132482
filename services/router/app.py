"""A router from its settings: connections, relay, server, and their end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import SystemRandom

import grpc
from tokenway.engine.v1 import engine_pb2_grpc
from tokenway.stream.v1 import stream_pb2_grpc

from services.router.admission import Admission
from services.router.discovery import Discovery, sources_of
from services.router.fleet import Fleet, FleetRules
from services.router.journal import SpanJournal
from services.router.membership import Membership
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

    def on_change() -> None:
        changed.set()
        admission.pump()

    clock, queue = asyncio.get_running_loop(), settings.service.queue
    fleet = Fleet(clock, FleetRules(health=settings.service.health, room=queue.room()), on_change)
    admission = Admission(fleet, clock, SystemRandom().random, queue.admission())
    budget = RetryBudget(settings.service.retry)
    relay = Relay(fleet, admission, clock, SpanJournal(), changed.set, budget=budget)
    fleet.evacuate = relay.evacuate
    found = settings.discovery
    membership = Membership(
        fleet,
        Discovery(sources_of(settings.replicas, found.names, found.file)),
        found.interval_s,
    )
    async with AsyncExitStack() as stack:
        door = await stack.enter_async_context(
            serving(
                settings.server.address,
                _registering(relay, FleetServicer(relay, fleet, membership.connections)),
                SERVICES,
                grace_s=LAST_FRAME_S,
            )
        )
        await stack.enter_async_context(membership.kept())
        stack.enter_context(watching(fleet, clock))
        tasks = await stack.enter_async_context(Tasks(_crashed))
        tasks.start("readiness", _readiness(changed, fleet, relay, door.health))
        yield Router(address=door.address, relay=relay, fleet=fleet, health=door.health)


def _registering(relay: Relay, servicer: FleetServicer) -> Callable[[grpc.aio.Server], None]:
    def register(server: grpc.aio.Server) -> None:
        stream_pb2_grpc.add_TokenStreamServiceServicer_to_server(TokenStreamServicer(relay), server)
        engine_pb2_grpc.add_EngineServiceServicer_to_server(servicer, server)

    return register


def _crashed(name: str, _: Exception) -> None:
    _log.error("%s ended; the router tells its readiness no more", name)


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
