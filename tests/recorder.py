"""Where a test's events go."""

from __future__ import annotations

import asyncio

from services.shared.stream.events import Accepted, Event, Failed, Finished, Tokens
from services.shared.stream.generation import (
    Generation,
    QualityOfService,
    Stopping,
)
from services.shared.stream.source import Submission
from tests.waiting import PATIENCE_S


class Recorder:
    """A sink that keeps its events and can be waited for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    @property
    def ids(self) -> list[int]:
        """The tokens so far; their positions must be without gap."""
        ids: list[int] = []
        for event in self.events:
            if isinstance(event, Tokens):
                assert event.first_position == len(ids)
                ids += event.ids
        return ids

    @property
    def last(self) -> Event | None:
        return self.events[-1] if self.events else None

    def accepted(self) -> int:
        return sum(isinstance(event, Accepted) for event in self.events)

    async def until(self, count: int) -> None:
        """Returns when there are `count` events."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.events) < count:
                self._changed.clear()
                await self._changed.wait()

    async def ended(self) -> Finished | Failed:
        async with asyncio.timeout(PATIENCE_S):
            while not isinstance(self.last, Finished | Failed):
                self._changed.clear()
                await self._changed.wait()
        assert isinstance(self.last, Finished | Failed)
        return self.last


def generation(
    name: str,
    *,
    prompt_ids: tuple[int, ...] = (1, 2, 3),
    max_tokens: int = 4,
    timeout_ms: int | None = None,
    model: str = "",
) -> Generation:
    return Generation(
        request_id=name,
        model=model,
        prompt_ids=prompt_ids,
        stopping=Stopping(max_tokens=max_tokens),
        quality_of_service=QualityOfService(timeout_ms=timeout_ms),
    )


def submission(name: str, sink: Recorder, **options: object) -> Submission:
    return Submission(generation(name, **options), "", sink)  # type: ignore[arg-type]  # passed on
