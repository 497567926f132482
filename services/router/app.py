"""A router from its settings: connections, relay, server, and their end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import SystemRandom

import grpc
from prometheus_client.registry import Collector
from tokenway.engine.v1 import engine_pb2_grpc
from tokenway.router.v1 import router_pb2_grpc
from tokenway.stream.v1 import stream_pb2_grpc

from services.router.admission.admission import Admission
from services.router.balancing.balancer import Balancer
from services.router.balancing.versions import Versions
from services.router.callers import callers_of
from services.router.connections.discovery import Discovery, sources_of
from services.router.connections.membership import Membership
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.watch import watching
from services.router.fleet_metrics import FleetMetrics
from services.router.journal import SpanJournal
from services.router.metrics import RouterMetrics, Sources
from services.router.operations import Operations
from services.router.relay.relay import Relay
from services.router.relay.retry_budget import RetryBudget
from services.router.rpc import FleetServicer
from services.router.servicer import NAME, RouterServicer
from services.router.settings import RouterSettings
from services.shared.grpc_traffic import TrafficMeter
from services.shared.health import Health, Readiness
from services.shared.mesh.mesh import Mesh
from services.shared.mesh.opening import meshing
from services.shared.process_metrics import Process, metrics_served
from services.shared.server import serving
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.tasks import Tasks
from services.shared.tls.identity import STREAM_NAME, Role

SERVICES = ("tokenway.stream.v1.TokenStreamService", "tokenway.engine.v1.EngineService", NAME)
LAST_FRAME_S = 0.5
"""How long the ends of the last generations have to reach their callers."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Router:
    """A router that serves."""

    address: str
    metrics: dict[str, str]
    relay: Relay
    fleet: Fleet
    health: Health


@asynccontextmanager
async def routing(settings: RouterSettings) -> AsyncIterator[Router]:
    """Serves inside the block; drain the relay before its end.

    Raises:
        CannotListen: the address is taken or is none of this machine.
        BadConfig: certificates or keys cannot be used.
    """
    changed = asyncio.Event()
    changed.set()

    clock, security, server = asyncio.get_running_loop(), settings.security, settings.server
    async with AsyncExitStack() as stack:
        mesh = await stack.enter_async_context(meshing(security, Role.ROUTER, server.host))
        guards = await stack.enter_async_context(callers_of(security, mesh, server.host))
        parts = _parts(settings, mesh, changed.set)
        process = Process(service="router", mesh=mesh)
        door = await stack.enter_async_context(
            serving(
                server.address,
                parts.register,
                SERVICES,
                grace_s=LAST_FRAME_S,
                credentials=mesh.server,
                guards=[TrafficMeter(process.traffic), *guards],
            )
        )
        metrics = await stack.enter_async_context(
            metrics_served(server.host, settings.metrics.port, process, *parts.collectors)
        )
        await stack.enter_async_context(parts.membership.kept())
        stack.enter_context(watching(parts.fleet, clock))
        tasks = await stack.enter_async_context(Tasks(_crashed))
        tasks.start("readiness", _readiness(changed, parts, door.health))
        yield Router(
            address=door.address,
            metrics=metrics,
            relay=parts.relay,
            fleet=parts.fleet,
            health=door.health,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    """What decides, without the doors."""

    fleet: Fleet
    relay: Relay
    membership: Membership
    operations: Operations
    collectors: Sequence[Collector]

    def register(self, server: grpc.aio.Server) -> None:
        fleet = FleetServicer(self.relay, self.fleet, self.membership)
        router = RouterServicer(self.operations, asyncio.get_running_loop())
        stream = TokenStreamServicer(self.relay)
        stream_pb2_grpc.add_TokenStreamServiceServicer_to_server(stream, server)
        engine_pb2_grpc.add_EngineServiceServicer_to_server(fleet, server)
        router_pb2_grpc.add_RouterServiceServicer_to_server(router, server)


def _parts(settings: RouterSettings, mesh: Mesh, on_change: Callable[[], None]) -> _Parts:
    """Args: on_change: called when the state of a replica, or ours, has changed."""

    def changed() -> None:
        on_change()
        admission.pump()

    clock, random, service = asyncio.get_running_loop(), SystemRandom(), settings.service
    versions = Versions(service.balancing.versions)
    rules = FleetRules(
        router=random.randbytes(8).hex(),
        health=service.health,
        room=service.queue.room(),
        versions=versions,
        long_prompt_tokens=service.balancing.long_prompt_tokens,
        prefill=service.prefill,
    )
    fleet = Fleet(clock, rules, changed)
    balancer = Balancer(service.balancing.comparison(random.randbytes(16)), versions)
    admission = Admission(fleet, clock, random.random, service.queue.admission(), balancer)
    budget = RetryBudget(service.retry)
    relay = Relay(fleet, admission, clock, SpanJournal(), on_change, budget=budget)
    fleet.evacuate = relay.evacuate
    found = settings.discovery
    discovery = Discovery(sources_of(settings.replicas, found.names, found.file))
    way = mesh.way(STREAM_NAME)
    membership = Membership(fleet, discovery, found.interval_s, way)
    links = membership.connections
    operations = Operations(
        fleet=fleet, admission=admission, balancer=balancer, links=links, relay=relay
    )
    sources = Sources(relay=relay, admission=admission, balancer=balancer, budget=budget)
    return _Parts(
        fleet=fleet,
        relay=relay,
        membership=membership,
        operations=operations,
        collectors=(RouterMetrics(sources), FleetMetrics(fleet, clock, membership.traffic)),
    )


def _crashed(name: str, _: Exception) -> None:
    _log.error("%s ended; the router tells its readiness no more", name)


async def _readiness(changed: asyncio.Event, parts: _Parts, health: Health) -> None:
    """Tells READY only while a replica takes generations and the router does."""
    while True:
        await changed.wait()
        changed.clear()
        ready = parts.fleet.ready()
        if parts.relay.draining:
            readiness = Readiness.DRAINING
        else:
            readiness = Readiness.READY if ready else Readiness.STARTING
        if readiness is not health.readiness:
            _log.info("router is %s; ready replicas: %s", readiness.value, ", ".join(ready))
            await health.set(readiness)
