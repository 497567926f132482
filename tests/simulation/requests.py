"""What is asked for: prompts of heavy-tailed lengths with shared beginnings, and some mistakes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from zlib import crc32

from services.shared.errors import Code
from services.shared.stream.generation import (
    CacheControl,
    Generation,
    Output,
    PriorityClass,
    QualityOfService,
    RoutingHints,
    Sampling,
    Stopping,
)
from tests.simulation.automaton import word_of
from tests.simulation.oracle import VOCABULARY

MODEL = "hashes"
PREFIXES = 4
ELSEWHERE = "elsewhere:1"
"""A peer that some callers name, and of which no engine may hear."""


class Requests:
    """Draws generations.

    Args:
        random: for the prompts' beginnings, which all share.
        context_length: tokens that prompt and output may have together.
        max_tokens: of an output, at most.
    """

    def __init__(self, random: Random, context_length: int, max_tokens: int) -> None:
        self._context_length = context_length
        self._max_tokens = max_tokens
        self._prefixes = [_ids(random, context_length) for _ in range(PREFIXES)]

    def draw(self, random: Random, name: str, tenant: str) -> tuple[Generation, Code | None]:
        """A generation, and the code with which it must fail if it is wrong."""
        generation = Generation(
            request_id=name,
            model=random.choice(("", MODEL)),
            prompt_ids=self._prompt(random),
            sampling=Sampling(seed=random.getrandbits(32) if random.random() < 0.5 else None),
            stopping=self._stopping(random),
            output=Output(logprobs=2 if random.random() < 0.1 else None),
            quality_of_service=_quality(random, tenant),
            cache=_cache(random),
            constraint=word_of(random.randint(1, 12)) if random.random() < 0.15 else None,
            routing=RoutingHints(
                session_key=f"session-{random.randrange(3)}" if random.random() < 0.3 else None,
                prefill_peer=ELSEWHERE if crc32(name.encode()) % 8 == 0 else None,
            ),
        )
        if random.random() < 0.04:
            return self._spoilt(random, generation)
        return generation, None

    def _prompt(self, random: Random) -> list[int]:
        longest = self._context_length - 2
        shared = 0
        if random.random() < 0.6:
            shared = int(min(longest - 1, 6 * random.paretovariate(0.9)))
        own = int(min(longest - shared, 3 * random.paretovariate(1.1)))
        return random.choice(self._prefixes)[:shared] + _ids(random, max(1, own))

    def _stopping(self, random: Random) -> Stopping:
        max_tokens = random.randint(1, self._max_tokens)
        if random.random() < 0.03:
            return Stopping(max_tokens=0)
        return Stopping(
            max_tokens=max_tokens,
            min_tokens=random.randint(0, max_tokens) if random.random() < 0.2 else 0,
            stop_token_ids=tuple(_ids(random, 4)) if random.random() < 0.2 else (),
            ignore_eos=random.random() < 0.3,
        )

    def _spoilt(self, random: Random, generation: Generation) -> tuple[Generation, Code]:
        match random.randrange(4):
            case 0:
                return replace(generation, model="another"), Code.NOT_FOUND
            case 1:
                wrong = [*generation.prompt_ids, VOCABULARY]
                return replace(generation, prompt_ids=wrong), Code.INVALID_ARGUMENT
            case 2:
                too_long = _ids(random, self._context_length)
                return replace(generation, prompt_ids=too_long), Code.INVALID_ARGUMENT
            case _:
                unknown = Output(prompt_logprobs=1)
                return replace(generation, output=unknown), Code.INVALID_ARGUMENT


def _ids(random: Random, count: int) -> list[int]:
    return [random.randrange(VOCABULARY) for _ in range(count)]


def _quality(random: Random, tenant: str) -> QualityOfService:
    hurried = random.random() < 0.15
    return QualityOfService(
        priority_class=(
            PriorityClass.BATCH if random.random() < 0.2 else PriorityClass.INTERACTIVE
        ),
        tenant=tenant,
        timeout_ms=int(100 * random.paretovariate(0.8)) + 50 if hurried else None,
    )


def _cache(random: Random) -> CacheControl:
    return CacheControl(
        salt=b"salt" if random.random() < 0.2 else b"",
        read=random.random() > 0.05,
        write=random.random() > 0.05,
    )
