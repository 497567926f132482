"""The way to the store: one batch at a time, and what counts while it does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.shared.access.shared_quotas.answer import Answer, Question
from services.shared.access.shared_quotas.errand import Asked, Errand, StoreAway, Told
from services.shared.access.shared_quotas.patience import within
from services.shared.access.shared_quotas.store_client import StoreClient
from services.shared.access.shared_quotas.store_connection import FAILURES

MOST_KEPT = 10_000
"""Ends of reservations that wait for a store that is away; the oldest is lost for another."""

MOST_TOGETHER = 256
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 2.0
"""Between two looks whether a store that was away answers again."""

MOST_SHOWN = 200
"""Characters of an error."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SharedCounts:
    """Since the beginning.

    Attributes:
        checks: decisions that are the store's.
        failures: those of them that were made without it.
        lost: ends of reservations that it never heard of; their leases end them.
        late: those that it heard of when their leases were over.
    """

    checks: int = 0
    failures: int = 0
    lost: int = 0
    late: int = 0


class StoreLink:
    """Questions go in the order in which they came; those that wait go together.

    Args:
        client: asks the store.
        store: its address.
        name: of this process.
        timeout_s: what one who asks may wait.
        otherwise: what counts while the store does not answer, for the log.

    Attributes:
        counts: what came of it.
        is_up: whether the store answered last time.
    """

    def __init__(
        self, client: StoreClient, store: str, name: str, timeout_s: float, otherwise: str
    ) -> None:
        self._client = client
        self._store = store
        self._name = name
        self._timeout_s = timeout_s
        self._otherwise = otherwise
        self._waiting: deque[Errand] = deque()
        self._wake = asyncio.Event()
        self._away_at: float | None = None
        self.counts = SharedCounts()
        self.is_up = False

    async def reach(self) -> None:
        """The first look; says in the log what came of it."""
        try:
            await self._client.probe(self._name)
        except FAILURES as error:
            self._away(error)
        else:
            self.is_up = True
            _log.info("tenants' limits are shared through %s", self._store)

    async def ask(self, question: Question) -> Answer:
        """Raises StoreAway when no answer comes in time."""
        self.counts.checks += 1
        try:
            return await self._asked(question)
        except StoreAway:
            self.counts.failures += 1
            raise

    def tell(self, question: Question, hear: Callable[[Answer], None]) -> None:
        """Until the store has heard it; `hear` is given its answer."""
        self._keep(Told(question, hear, is_kept=True))

    def mention(self, question: Question, hear: Callable[[Answer], None]) -> None:
        """Once, if the store answers now."""
        if self.is_up:
            self._keep(Told(question, hear, is_kept=False))

    async def run(self) -> None:
        """Carries what waits, until it is cancelled."""
        while True:
            if not self.is_up:
                await self._come_back()
            await self._wake.wait()
            await self._carry()

    def abandon(self) -> None:
        """Nobody carries any more."""
        self._away(RuntimeError("it is not asked any more"))

    async def close(self) -> None:
        """Tells what is still to be told, if that is possible in time."""
        try:
            await within(self._timeout_s, self._empty())
        except TimeoutError:
            self.is_up = False
        self.counts.lost += len(self._waiting)
        if self._waiting:
            _log.warning("%d ends of reservations were not told", len(self._waiting))
        await self._client.close()

    async def _asked(self, question: Question) -> Answer:
        if not self.is_up:
            raise StoreAway(is_known=False)
        asked = Asked(question, asyncio.get_running_loop().create_future())
        self._keep(asked)
        try:
            return await within(self._timeout_s, asked.answer)
        except TimeoutError:
            raise StoreAway(is_known=asked.is_sent) from None

    def _keep(self, errand: Errand) -> None:
        if len(self._waiting) >= MOST_KEPT:
            self._waiting.popleft().lost()
            self.counts.lost += 1
        self._waiting.append(errand)
        self._wake.set()

    async def _empty(self) -> None:
        while self.is_up and self._waiting:
            await self._carry()

    async def _carry(self) -> None:
        batch = self._batch()
        if not batch:
            return
        try:
            answers = await self._client.answers([errand.question for errand in batch])
        except FAILURES as error:
            self._lose(batch)
            self._away(error)
        except asyncio.CancelledError:
            self._lose(batch)
            raise
        else:
            for errand, answer in zip(batch, answers, strict=True):
                errand.heard(answer)

    def _batch(self) -> list[Errand]:
        batch: list[Errand] = []
        while self._waiting and len(batch) < MOST_TOGETHER:
            errand = self._waiting.popleft()
            if not errand.is_over:
                errand.sent()
                batch.append(errand)
        if not self._waiting:
            self._wake.clear()
        return batch

    def _lose(self, batch: Sequence[Errand]) -> None:
        """Who waits is told; what must be told is kept, in its order."""
        pending = [*batch, *self._waiting]
        self._waiting = deque(errand for errand in pending if errand.is_kept)
        for errand in pending:
            errand.lost()

    def _away(self, error: Exception) -> None:
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_SHOWN]
        self.is_up = False
        if self._away_at is None:
            self._away_at = asyncio.get_running_loop().time()
            text = "TENANTS' LIMITS ARE NOT SHARED, %s does not serve (%s): until it does, %s"
            _log.error(text, self._store, cause, self._otherwise)

    async def _come_back(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self.is_up:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                await self._client.probe(self._name)
            except FAILURES:
                continue
            self.is_up = True
        now = asyncio.get_running_loop().time()
        passed_s = now - (now if self._away_at is None else self._away_at)
        self._away_at = None
        self._wake.set()
        text = "tenants' limits are shared again through %s, after %.1f s"
        _log.warning(text, self._store, passed_s)
