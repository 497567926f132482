"""Tenants that ask for generations of random tokens, and what they wait and get."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation, QualityOfService, Sampling, Stopping
from services.shared.stream.load import ReplicaState
from services.shared.stream.source import Submission
from services.shared.tls.way import CLEAR

TOKENS = range(1000, 40_000)
POLL_S = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What a tenant asks for, as often as it does."""

    tenant: str
    prompt_tokens: int
    output_tokens: int

    def generation(self, name: str) -> Generation:
        draw = random.Random(name)  # noqa: S311  # no secret
        return Generation(
            request_id=name,
            prompt_ids=draw.choices(TOKENS, k=self.prompt_tokens),
            sampling=Sampling(temperature=0, seed=1),
            stopping=Stopping(max_tokens=self.output_tokens, ignore_eos=True),
            quality_of_service=QualityOfService(tenant=self.tenant),
        )


class Asked:
    """One generation: when it was asked for, and how long its first token took."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.began = time.perf_counter()
        self.first_s: float | None = None
        self.failed: Failed | None = None
        self.ended = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Tokens):
            if self.first_s is None:
                self.first_s = time.perf_counter() - self.began
        elif isinstance(event, Failed | Finished):
            self.failed = event if isinstance(event, Failed) else None
            self.ended.set()

    @property
    def first_at(self) -> float:
        """When its first token came."""
        return self.began + (self.first_s or 0.0)

    async def result(self) -> Asked:
        """Itself, when it has ended; raises when it failed."""
        await self.ended.wait()
        if self.failed is not None:
            raise self.failed.error()
        return self


class Door:
    """Sessions to the sources that are asked, in turns."""

    def __init__(self, sessions: Sequence[ClientSession]) -> None:
        self._sessions = sessions
        self._asked = 0

    def ask(self, wish: Wish) -> Asked:
        asked = Asked(wish)
        session = self._sessions[self._asked % len(self._sessions)]
        generation = wish.generation(f"{wish.tenant}-{self._asked}")
        self._asked += 1
        session.submit(Submission(generation, "", asked))
        return asked


@asynccontextmanager
async def opened(addresses: Sequence[str], total_blocks: int) -> AsyncIterator[Door]:
    """A door to these sources, once they are ready and have so many blocks together."""
    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(_session(address)) for address in addresses]
        while sum(_ready_blocks(session) for session in sessions) < total_blocks:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        yield Door(sessions)


@asynccontextmanager
async def _session(address: str) -> AsyncIterator[ClientSession]:
    session = ClientSession(CLEAR, address)
    running = asyncio.ensure_future(session.run())
    try:
        yield session
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await session.close()


def _ready_blocks(session: ClientSession) -> int:
    load = session.load()
    return load.total_blocks if load.state is ReplicaState.READY else 0
