"""Generations that are submitted to an engine of this process, and what becomes of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from services.engine.engine import Engine
from services.shared.stream.events import Accepted, Cancel, Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission


@dataclass(eq=False)
class Asked:
    cancel: Cancel
    events: list[Event]
    ended: asyncio.Event

    @property
    def accepted(self) -> Accepted:
        first = self.events[0]
        assert isinstance(first, Accepted)
        return first

    @property
    def ids(self) -> list[int]:
        return [one for event in self.events if isinstance(event, Tokens) for one in event.ids]

    @property
    def end(self) -> Finished | Failed:
        last = self.events[-1]
        assert isinstance(last, (Finished, Failed))
        return last

    async def finished(self) -> Finished:
        await self.ended.wait()
        end = self.end
        assert isinstance(end, Finished), end
        return end


def ask(engine: Engine, generation: Generation) -> Asked:
    events: list[Event] = []
    ended = asyncio.Event()

    def sink(event: Event) -> None:
        events.append(event)
        if isinstance(event, (Finished, Failed)):
            ended.set()

    return Asked(engine.submit(Submission(generation, "", sink)), events, ended)
