"""Many requests at once, a fault in their middle, and answers that must not show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from tests.faults.answer import Answer
from tests.faults.asked import Asked, all_asked, leader
from tests.faults.cluster import Cluster
from tests.faults.listener import Listener
from tests.faults.mortal import Mortal
from tests.integration.stack import PATIENCE_S

Fault = Callable[[Mortal], None]

TOGETHER = {"batching": {"max_wait_ms": 500, "token_budget": 4096}}
"""Service settings of an engine that begins all that is asked of it in one step."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to one request, and how many replicas each of its outputs was sent to."""

    asked: Asked
    answer: Answer
    attempts: Sequence[int]

    @property
    def continued(self) -> bool:
        return max(self.attempts) > 1


@dataclass(kw_only=True)
class Trial:
    """One cluster, what is asked of it, and the undisturbed answers."""

    cluster: Cluster
    client: httpx.AsyncClient
    asked: Sequence[Asked]
    undisturbed: Mapping[str, Answer]
    rounds: int = field(default=0, init=False)

    async def disturbed(self, tokens: int, fault: Fault) -> list[Heard]:
        """All is asked, and when the first stream has `tokens` tokens its engine has the fault.

        Every answer must be the undisturbed one.
        """
        self.rounds += 1
        listeners = [Listener(asked, f"{self.rounds}.{at}") for at, asked in enumerate(self.asked)]
        first = listeners[0]
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(listener.hear(self.client)) for listener in listeners]
            await first.until(tokens)
            (victim,) = self.cluster.has(first.request_id)
            fault(victim)
        heard = [
            Heard(listener.asked, answer.result(), self.cluster.attempts(listener.request_id))
            for listener, answer in zip(listeners, answers, strict=True)
        ]
        for one in heard:
            assert one.answer == self.undisturbed[one.asked.name], one
        return heard


@asynccontextmanager
async def trial_on(cluster: Cluster) -> AsyncIterator[Trial]:
    """A trial whose undisturbed answers are all right in themselves."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=cluster.stack.url, timeout=PATIENCE_S, limits=limits
    ) as client:
        head = leader(cluster.model)
        told = await Listener(head, "head").hear(client)
        text = "".join(event["choices"][0]["delta"].get("content", "") for event in told.told["0"])
        asked = [head, *all_asked(cluster.model, _middle(text))]
        answers = await asyncio.gather(
            *(Listener(one, f"0.{at}").hear(client) for at, one in enumerate(asked))
        )
        for one, answer in zip(asked, answers, strict=True):
            assert answer.complete, f"{one.name}: {answer}"
        undisturbed = {one.name: answer for one, answer in zip(asked, answers, strict=True)}
        yield Trial(cluster=cluster, client=client, asked=asked, undisturbed=undisturbed)


def _middle(text: str) -> str:
    """Three characters that stand in the text but once, so far behind as can be."""
    half = len(text) // 2
    return next(
        text[at : at + 3]
        for at in range(half, len(text))
        if text.count(text[at : at + 3]) == 1 and "\ufffd" not in text[at : at + 3]
    )
