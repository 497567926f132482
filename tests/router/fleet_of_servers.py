"""A whole router over replicas on loopback, all in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from services.router.app import Router, routing
from services.router.replica_spec import ReplicaSpec
from services.router.security_settings import RouterSecurity
from services.router.settings import RouterSettings, ServiceSettings
from services.shared.settings import ServerSettings
from services.shared.stream.client_session import ClientSession
from tests.recorder import Recorder, submission
from tests.router.replica import replica
from tests.router.servicer import ScriptedEngine
from tests.stream_server import client
from tests.waiting import until


class Servers:
    """Replicas that a test kills and brings back."""

    def __init__(self, engines: list[ScriptedEngine]) -> None:
        self.engines = engines
        self.addresses = ["127.0.0.1:0"] * len(engines)
        self._running: dict[int, AsyncExitStack] = {}

    async def start(self, number: int, *, plays: bool = True) -> None:
        stack = self._running[number] = AsyncExitStack()
        self.addresses[number] = await stack.enter_async_context(
            replica(self.engines[number], self.addresses[number], plays=plays)
        )

    async def kill(self, number: int) -> None:
        await self._running.pop(number).aclose()

    async def kill_all(self) -> None:
        for number in list(self._running):
            await self.kill(number)


@asynccontextmanager
async def servers(*engines: ScriptedEngine, plays: bool = True) -> AsyncIterator[Servers]:
    running = Servers(list(engines))
    try:
        for number in range(len(engines)):
            await running.start(number, plays=plays)
        yield running
    finally:
        await running.kill_all()


@asynccontextmanager
async def router_over(
    addresses: Sequence[str | ReplicaSpec],
    *,
    ready: int | None = None,
    service: ServiceSettings | None = None,
) -> AsyncIterator[tuple[Router, ClientSession]]:
    """A router and a session to it; `ready` replicas (all when not given) are ready."""
    settings = RouterSettings(
        replicas=tuple(
            ReplicaSpec.parse(one) if isinstance(one, str) else one for one in addresses
        ),
        server=ServerSettings(port=0, host="127.0.0.1"),
        service=service or ServiceSettings(),
        security=RouterSecurity(mtls=False),
    )
    async with routing(settings) as router:
        await until(
            lambda: len(router.fleet.ready()) == (len(addresses) if ready is None else ready)
        )
        async with client(router.address) as session:
            yield router, session


def send(session: ClientSession, count: int, **options: int | str) -> list[Recorder]:
    """Submits generations with prompts of their own."""
    recorders = [Recorder() for _ in range(count)]
    for number, recorder in enumerate(recorders):
        session.submit(submission(f"x{number}", recorder, prompt_ids=(number, 1), **options))
    return recorders
