"""The service cache as a supply: reads a prompt's blocks from the store, several at a time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from services.engine.kv.cache_settings import CacheSettings
from services.engine.kv.crew import Crew
from services.engine.kv.figures import TierFigures
from services.engine.kv.missed import Missed, counted
from services.engine.kv.record import BadRecord
from services.engine.kv.records import Records
from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.supply import AT_ONCE, Given, Wanted
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Tier
from services.shared.errors import Unavailable
from services.shared.stream.events import CacheMiss

IN_FLIGHT = 4
"""Threads that read for one prompt, AT_ONCE blocks each."""

THREADS = 8
HUNG_CALLS = 4

CLOSE_S = 1.0
FLUSH_S = 60.0

Answer = TypeVar("Answer")


class Read(NamedTuple):
    """Blocks up to the first that does not come, and why that one does not."""

    blocks: Sequence[memoryview]
    cause: CacheMiss | None = None


class ServiceCache:
    """Reads records and checks them in threads of its own.

    A call that does not come back keeps its thread: with HUNG_CALLS of them nothing more is asked.
    """

    tier = Tier.SERVICE

    def __init__(
        self,
        records: Records,
        switch: CacheSwitch,
        figures: TierFigures,
        settings: CacheSettings,
    ) -> None:
        self._records = records
        self._switch = switch
        self._figures = figures
        self._timeout_s = settings.read_timeout_s
        self._crew = Crew("cache-read", THREADS)
        self._hung: set[Future[Any]] = set()
        self._awaited: dict[asyncio.Future[Any], asyncio.AbstractEventLoop] = {}
        switch.listen(self._switched)

    def can_supply(self, wanted: Wanted) -> bool:  # noqa: ARG002  # anything may be there
        return self._switch.enabled and not self._hangs

    def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        reading = self._read(wanted.addresses, time.monotonic() + self._timeout_s)
        return counted(reading, len(wanted.addresses), self._figures)

    async def flush(self) -> int:
        """Drops all records of this layout, switched on or off, and tells how many.

        Raises:
            Unavailable: the store failed, or was not done within a minute.
        """
        try:
            async with asyncio.timeout(FLUSH_S):
                return await asyncio.wrap_future(self._crew.call(self._records.flush))
        except (StoreFailed, TimeoutError) as error:
            raise Unavailable(f"the service cache cannot be flushed: {error}") from error

    async def close(self) -> bool:
        """Whether all calls have come back, within a second: then the store may be closed."""
        self._crew.close()
        return await asyncio.to_thread(self._crew.join, CLOSE_S)

    async def _read(
        self, addresses: Sequence[bytes], deadline: float
    ) -> AsyncGenerator[Sequence[memoryview], None]:
        """Raises Missed where the next block does not come."""
        self._check(self._switch.enabled, CacheMiss.OFF)
        self._check(not self._hangs, CacheMiss.UNREACHABLE)
        there = await self._answer(self._crew.call(partial(self._look, addresses)), deadline)
        left = (addresses[at : min(at + AT_ONCE, there)] for at in range(0, there, AT_ONCE))
        flight = deque(map(self._get, islice(left, IN_FLIGHT)))
        try:
            while flight:
                read = await self._answer(flight.popleft(), deadline)
                flight.extend(map(self._get, islice(left, 1)))
                if read.blocks:
                    yield read.blocks
                if read.cause is not None:
                    raise Missed(read.cause)
        finally:
            for call in flight:
                call.cancel()
        self._check(there == len(addresses), CacheMiss.ABSENT)

    async def _answer(self, call: Future[Answer], deadline: float) -> Answer:
        """The answer of a thread; what comes after the deadline or an end is dropped."""
        waiting = asyncio.wrap_future(call)
        self._awaited[waiting] = asyncio.get_running_loop()
        try:
            await asyncio.wait({waiting}, timeout=deadline - time.monotonic())
        finally:
            del self._awaited[waiting]
            late = waiting.cancel()
        self._check(self._switch.enabled and waiting.cancelled() == late, CacheMiss.OFF)
        if late:
            if call.running():
                self._hung.add(call)
            raise Missed(CacheMiss.TIMEOUT)
        return waiting.result()

    @property
    def _hangs(self) -> bool:
        """Whether too many calls that nobody waits for any more have not come back."""
        if self._hung:
            self._hung = {call for call in self._hung if not call.done()}
        return len(self._hung) >= HUNG_CALLS

    def _get(self, addresses: Sequence[bytes]) -> Future[Read]:
        return self._crew.call(partial(self._opened, addresses))

    def _switched(self, enabled: bool) -> None:
        """Off, on any thread: nobody waits for what is in flight."""
        if not enabled:
            for waiting, home in list(self._awaited.items()):
                home.call_soon_threadsafe(waiting.cancel)

    def _check(self, fits: bool, otherwise: CacheMiss) -> None:
        if not fits:
            raise Missed(otherwise)

    # What follows runs in the crew's threads.

    def _look(self, addresses: Sequence[bytes]) -> int:
        """How many blocks there are, up to the first that is not."""
        there = self._asked(partial(self._records.present, addresses))
        return next((at for at, is_there in enumerate(there) if not is_there), len(there))

    def _opened(self, addresses: Sequence[bytes]) -> Read:
        blocks: list[memoryview] = []
        try:
            for address in addresses:
                payload = self._asked(partial(self._records.read, address))
                if payload is None:
                    return Read(blocks, CacheMiss.EVICTED)
                blocks.append(payload)
        except Missed as missed:
            return Read(blocks, missed.cause)
        return Read(blocks)

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        """What the records answer. Raises Missed."""
        self._check(self._switch.enabled, CacheMiss.OFF)
        try:
            return question()
        except BadRecord as error:
            raise Missed(error.miss) from error
        except StoreTimeout as error:
            raise Missed(CacheMiss.TIMEOUT) from error
        except StoreFailed as error:
            raise Missed(CacheMiss.UNREACHABLE) from error
