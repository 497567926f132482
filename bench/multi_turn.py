"""Conversations of many turns, each sent at its time whatever became of the others (open loop)."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Accepted, Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation, RoutingHints, Sampling, Stopping
from services.shared.stream.source import Submission

TOKENS = range(1000, 40_000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Means of what is drawn; a conversation begins every 1 / `rate` seconds.

    Args:
        opening: tokens of a conversation's first prompt.
        growth: tokens that a turn adds to it, besides the answer before.
        think_s: between the end of an answer and the next turn.
    """

    conversations: int
    turns: int
    rate: float
    opening: int
    growth: int
    answer: int
    think_s: float


@dataclass(slots=True)
class Figures:
    """Tokens of prompts, those of them that were cached, and waits for first tokens."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    first_token_s: list[float] = field(default_factory=list)

    @property
    def hit_rate(self) -> float:
        return self.cached_tokens / self.prompt_tokens

    @property
    def mean_first_token_ms(self) -> float:
        return 1000 * sum(self.first_token_s) / len(self.first_token_s)

    def __str__(self) -> str:
        late = sorted(self.first_token_s)[int(0.95 * len(self.first_token_s))]
        return (
            f"{self.hit_rate:.1%} of {self.prompt_tokens:,} prompt tokens cached, first token "
            f"after {self.mean_first_token_ms:.0f} ms, 95th percentile {1000 * late:.0f} ms"
        )


class Turn:
    """One generation; notes its figures."""

    def __init__(self, figures: Figures, prompt_tokens: int) -> None:
        self.ids: list[int] = []
        self.ended = asyncio.Event()
        self.failed: Failed | None = None
        self._figures = figures
        self._prompt_tokens = prompt_tokens
        self._began = time.perf_counter()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Accepted):
            self._figures.prompt_tokens += self._prompt_tokens
            self._figures.cached_tokens += event.cached_tokens.device
        elif isinstance(event, Tokens):
            if not self.ids:
                self._figures.first_token_s.append(time.perf_counter() - self._began)
            self.ids += event.ids
        elif isinstance(event, Failed):
            self.failed = event
            self.ended.set()
        elif isinstance(event, Finished):
            self.ended.set()


async def converse(session: ClientSession, shape: Shape, seed: int) -> Figures:
    """All conversations, which are the same for the same seed; raises when a turn fails."""
    figures, draw = Figures(), random.Random(seed)  # noqa: S311  # no secret
    async with asyncio.TaskGroup() as group:
        for number in range(shape.conversations):
            await asyncio.sleep(draw.expovariate(shape.rate))
            group.create_task(_conversation(session, shape, f"{seed}-{number}", figures))
    return figures


async def _conversation(session: ClientSession, shape: Shape, name: str, figures: Figures) -> None:
    draw = random.Random(name)  # noqa: S311  # no secret
    prompt_ids = _tokens(draw, shape.opening)
    for number in range(shape.turns):
        turn = Turn(figures, len(prompt_ids))
        generation = Generation(
            request_id=f"{name}-{number}",
            prompt_ids=prompt_ids,
            sampling=Sampling(temperature=0, seed=1),
            stopping=Stopping(max_tokens=_count(draw, shape.answer), ignore_eos=True),
            routing=RoutingHints(session_key=name),
        )
        session.submit(Submission(generation, "", turn))
        await turn.ended.wait()
        if turn.failed is not None:
            raise turn.failed.error()
        prompt_ids = [*prompt_ids, *turn.ids, *_tokens(draw, shape.growth)]
        await asyncio.sleep(draw.expovariate(1 / shape.think_s))


def _tokens(draw: random.Random, mean: int) -> list[int]:
    return [draw.choice(TOKENS) for _ in range(_count(draw, mean))]


def _count(draw: random.Random, mean: int) -> int:
    """Half of the mean at least, so that no turn is trivial."""
    return round(mean / 2 + draw.expovariate(2 / mean))
