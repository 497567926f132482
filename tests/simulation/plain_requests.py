"""Generations that share nothing and end where their limit is, so that their cost is known."""

from __future__ import annotations

from random import Random

from services.shared.errors import Code
from services.shared.stream.generation import Generation, QualityOfService, Stopping
from tests.simulation.oracle import VOCABULARY
from tests.simulation.parameters import Backlog

HURRIED = 0.02
HURRY_MS = 50


class PlainRequests:
    """Draws generations of the lengths that each tenant likes."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog

    def draw(self, random: Random, name: str, tenant: str) -> tuple[Generation, Code | None]:
        """A generation; none is wrong."""
        longest = self._backlog.prompt_tokens[tenant]
        generation = Generation(
            request_id=name,
            prompt_ids=[
                random.randrange(VOCABULARY) for _ in range(random.randint(longest // 2, longest))
            ],
            stopping=Stopping(
                max_tokens=random.randint(1, self._backlog.max_tokens), ignore_eos=True
            ),
            quality_of_service=QualityOfService(
                tenant=tenant, timeout_ms=self._timeout_ms(random, tenant)
            ),
        )
        return generation, None

    def _timeout_ms(self, random: Random, tenant: str) -> int | None:
        """Some want more haste than there can be behind what their own tenant asked before."""
        is_hurried = tenant != self._backlog.light and random.random() < HURRIED
        return HURRY_MS if is_hurried else None
