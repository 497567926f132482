"""A request and its prompts as generations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from services.codec.head import EncodedPrompt
from services.codec.request import Request
from services.shared.errors import ContextLengthExceeded
from services.shared.stream.generation import (
    MAX_REQUEST_ID_CHARACTERS,
    MAX_SEED,
    CacheControl,
    Constraint,
    Generation,
    Output,
    PriorityClass,
    QualityOfService,
    RoutingHints,
    Stopping,
)

EXPECTED_OUTPUT_TOKENS = 512
"""Of an output that may be longer."""


def room(prompt_tokens: int, context_length: int) -> int:
    """Output tokens that fit; raises ContextLengthExceeded when none does."""
    if prompt_tokens >= context_length:
        raise ContextLengthExceeded(prompt_tokens, context_length, field="messages")
    return context_length - prompt_tokens


def max_tokens_of(request: Request, available: int) -> int:
    """What the caller wishes is a cap, not a demand: never more than there is room for."""
    wished = request.ending.max_tokens
    return available if wished is None else min(wished, available)


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What the codec decides of a request's generations. `is_batch`: whatever the caller asks."""

    request_id: str
    model: str
    timeout_ms: int
    tenant: str | None = None
    is_batch: bool = False
    weight: float | None = None
    constraint: Constraint | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """A prompt, and how many tokens may follow it. `is_all`: as many as the context holds."""

    prompt: EncodedPrompt
    max_tokens: int
    is_all: bool


def room_for(
    request: Request, prompt: EncodedPrompt, context_length: int, most: int | None = None
) -> Room:
    """At most `most` tokens. Raises ContextLengthExceeded when there is no room for an output."""
    available = room(len(prompt.ids), context_length)
    max_tokens = max_tokens_of(request, available if most is None else min(available, most))
    return Room(prompt=prompt, max_tokens=max_tokens, is_all=max_tokens == available)


def tokens_expected(request: Request, rooms: Sequence[Room]) -> int:
    """What prompts and outputs may come to, for who pays before: not all that might be."""
    outputs = sum(min(place.max_tokens, EXPECTED_OUTPUT_TOKENS) for place in rooms)
    return sum(len(place.prompt.ids) for place in rooms) + request.choices * outputs


def generations_of(request: Request, rooms: Sequence[Room], terms: Terms) -> list[Generation]:
    """For each prompt one generation for each choice; output i of a prompt has the seed + i."""
    generations = []
    for place in rooms:
        generation = _generation(request, place, terms)
        generations += [_drawn(generation, choice) for choice in range(request.choices)]
    if len(generations) == 1:
        return generations
    # Names stay different, and within the limit of the contract.
    stem = terms.request_id[: MAX_REQUEST_ID_CHARACTERS - 5]
    return [
        replace(generation, request_id=f"{stem}-{at}") for at, generation in enumerate(generations)
    ]


def _drawn(generation: Generation, choice: int) -> Generation:
    seed = generation.sampling.seed
    if seed is None or choice == 0:
        return generation
    sampling = replace(generation.sampling, seed=(seed + choice) & MAX_SEED)
    return replace(generation, sampling=sampling)


def _generation(request: Request, place: Room, terms: Terms) -> Generation:
    """Affinity keys go on as digests, for they may name people."""
    ending = request.ending
    affinity = request.affinity
    is_batch = terms.is_batch or request.priority > 0
    priority_class = PriorityClass.BATCH if is_batch else PriorityClass.INTERACTIVE
    return Generation(
        request_id=terms.request_id,
        model=terms.model,
        prompt_ids=place.prompt.ids,
        sampling=request.sampling,
        stopping=Stopping(
            max_tokens=place.max_tokens,
            min_tokens=min(ending.min_tokens, place.max_tokens),
            stop_token_ids=ending.stop_token_ids,
            ignore_eos=ending.ignore_eos,
        ),
        output=Output(logprobs=request.delivery.top_logprobs),
        constraint=terms.constraint,
        quality_of_service=QualityOfService(
            priority_class=priority_class,
            tenant=terms.tenant,
            timeout_ms=terms.timeout_ms,
            weight=terms.weight,
        ),
        cache=CacheControl(salt=request.cache_salt, pinned_tokens=place.prompt.head_tokens),
        routing=RoutingHints(
            session_key=sha256(affinity.encode()).hexdigest() if affinity else None
        ),
    )
