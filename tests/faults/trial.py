"""Many requests at once, a fault in their middle, and answers that must not show it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from tests.faults.answer import Answer
from tests.faults.asked import TOKENS, Asked, all_asked, leader
from tests.faults.cluster import Cluster
from tests.faults.listener import Listener
from tests.faults.mortal import Mortal
from tests.integration.stack import PATIENCE_S
from tests.waiting import until


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """What a fault finds: the engine that has all answers, and the first of those who hear them."""

    cluster: Cluster
    at: int
    first: Listener

    @property
    def victim(self) -> Mortal:
        return self.cluster.engines[self.at]


Fault = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to one request, and how many replicas each of its outputs was sent to."""

    asked: Asked
    answer: Answer
    attempts: Sequence[int]

    @property
    def continued(self) -> bool:
        """Whether each of its outputs came from more than one replica."""
        return min(self.attempts) > 1

    @property
    def tokens(self) -> int:
        """Of its shortest output, if others are of the full length."""
        return self.answer.tokens - TOKENS * (len(self.attempts) - 1)


@dataclass(kw_only=True)
class Trial:
    """One cluster, what is asked of it, and the undisturbed answers."""

    cluster: Cluster
    asked: Sequence[Asked]
    undisturbed: Mapping[str, Answer]
    rounds: int = field(default=0, init=False)

    async def heard(self, tokens: int, fault: Fault) -> list[Heard]:
        """All is asked of one engine; it has the fault when the first stream has `tokens` tokens.

        Gives what was heard, in the order of what was asked.
        """
        at = self.rounds % len(self.cluster.engines)
        self.rounds += 1
        listeners = [
            Listener(asked, f"{self.rounds}.{number}") for number, asked in enumerate(self.asked)
        ]
        scene = Scene(cluster=self.cluster, at=at, first=listeners[0])
        await self.cluster.lean_on(at)
        async with _client(self.cluster) as client, asyncio.TaskGroup() as group:
            answers = [group.create_task(listener.hear(client)) for listener in listeners]
            asked = {listener.request_id for listener in listeners}
            await until(lambda: asked <= scene.victim.received())
            await self.cluster.level()
            await scene.first.until(tokens)
            assert not any(
                asked & other.received()
                for other in self.cluster.engines
                if other is not scene.victim
            ), "an answer has left its engine before the fault"
            await fault(scene)
        return [
            Heard(listener.asked, answer.result(), self.cluster.attempts(listener.request_id))
            for listener, answer in zip(listeners, answers, strict=True)
        ]

    async def disturbed(self, tokens: int, fault: Fault) -> list[Heard]:
        """The same where every answer must be the undisturbed one."""
        heard = await self.heard(tokens, fault)
        for one in heard:
            assert one.answer == self.undisturbed[one.asked.name], one
        return heard


async def trial_on(cluster: Cluster) -> Trial:
    """A trial whose undisturbed answers are all right in themselves."""
    async with _client(cluster) as client:
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
    return Trial(cluster=cluster, asked=asked, undisturbed=undisturbed)


def _client(cluster: Cluster) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=cluster.stack.url, timeout=PATIENCE_S, limits=limits)


def _middle(text: str) -> str:
    """Three characters that stand in the text but once, so far behind as can be."""
    half = len(text) // 2
    return next(
        text[at : at + 3]
        for at in range(half, len(text))
        if text.count(text[at : at + 3]) == 1 and "\ufffd" not in text[at : at + 3]
    )
