"""Those who ask: each with its habits, one generation after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from services.shared.errors import Code
from services.shared.stream.generation import Generation
from tests.simulation.asked import Asked, Rules, Submit
from tests.simulation.judge import Judge
from tests.simulation.parameters import ClientParameters
from tests.simulation.plain_requests import PlainRequests
from tests.simulation.requests import Requests
from tests.simulation.unread import unread
from tests.simulation.virtual_time import VirtualLoop

MAX_ATTEMPTS = 4
AGAIN = frozenset({Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.DATA_LOSS})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all clients share; `submit` reaches the router of now."""

    loop: VirtualLoop
    judge: Judge
    rules: Rules
    requests: Requests | PlainRequests
    submit: Submit


class Client:
    """Asks for so many generations, with pauses between them.

    Attributes:
        asked: all that it asked for, with later attempts after the failed ones.
        reads: a client that does not has its events wait, merged.
    """

    def __init__(
        self, name: str, parameters: ClientParameters, random: Random, around: Surroundings
    ) -> None:
        self.name = name
        self.tenant = parameters.tenant
        self.asked: list[Asked] = []
        self.reads = True
        self._random = random
        self._around = around
        self._left = parameters.generations
        self._think_s = parameters.think_s
        self._has_stopped = False

    def begin(self) -> None:
        self._pause(self._think_s)

    def pause(self) -> None:
        """Asks for nothing new; what failed may be asked again."""
        self._left = 0

    def stop(self) -> None:
        """Asks for nothing more."""
        self._left = 0
        self._has_stopped = True

    @property
    def is_waiting(self) -> bool:
        """Whether something that it asked for has no end yet."""
        return any(not asked.is_over for asked in self.asked)

    def leave(self) -> bool:
        """Gives up what it waits for; False when there is nothing."""
        running = [asked for asked in self.asked if not asked.is_over]
        for asked in running:
            asked.leave()
        return bool(running)

    def ask(self) -> None:
        """Asks for one generation now."""
        number = f"{self.name}.{len(self.asked)}"
        generation, wrong = self._around.requests.draw(self._random, number, self.tenant)
        self._submit(generation, wrong, 1)

    def _pause(self, mean_s: float) -> None:
        if self._left > 0:
            self._left -= 1
            self._around.loop.call_later(self._random.expovariate(1 / mean_s), self.ask)

    def _submit(self, generation: Generation, wrong: Code | None, attempt: int) -> None:
        around = self._around
        if self._has_stopped:
            return
        asked = Asked(generation, around.judge, around.loop.time, around.rules, wrong)
        self.asked.append(asked)

        def ended() -> None:
            failed = asked.failed
            if failed is None or failed.code not in AGAIN or attempt == MAX_ATTEMPTS:
                self._pause(self._think_s)
            elif self._random.random() < 0.7:
                pause_s = failed.retry_after_s or self._random.uniform(0.01, 0.5)
                again = self._next_attempt(asked, attempt)
                around.loop.call_later(pause_s, self._submit, again, wrong, attempt + 1)
            else:
                self._pause(self._think_s)

        asked.on_end = ended
        asked.submit(around.submit if self.reads else unread(asked, around.submit))

    def _next_attempt(self, asked: Asked, attempt: int) -> Generation:
        """The rest of what failed, or all of it anew."""
        generation = asked.generation
        request_id = f"{generation.request_id.partition('/')[0]}/{attempt}"
        if asked.accepted is not None and self._random.random() < 0.5:
            sampling = replace(generation.sampling, seed=asked.accepted.seed)
            generation = replace(generation, sampling=sampling, generated_ids=asked.received)
        return replace(generation, request_id=request_id)
