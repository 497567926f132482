"""A request and its prompt as a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from services.codec.request import Request
from services.shared.errors import ContextLengthExceeded
from services.shared.stream.generation import (
    CacheControl,
    Generation,
    QualityOfService,
    RoutingHints,
    Stopping,
)


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
    """What the codec decides of a generation."""

    request_id: str
    model: str
    max_tokens: int
    timeout_ms: int


def generation_of(request: Request, prompt_ids: Sequence[int], terms: Terms) -> Generation:
    """The generation; affinity keys go on as digests, for they may name people."""
    ending = request.ending
    affinity = request.affinity
    return Generation(
        request_id=terms.request_id,
        model=terms.model,
        prompt_ids=prompt_ids,
        sampling=request.sampling,
        stopping=Stopping(
            max_tokens=terms.max_tokens,
            min_tokens=min(ending.min_tokens, terms.max_tokens),
            stop_token_ids=ending.stop_token_ids,
            ignore_eos=ending.ignore_eos,
        ),
        quality_of_service=QualityOfService(timeout_ms=terms.timeout_ms),
        cache=CacheControl(salt=request.cache_salt),
        routing=RoutingHints(
            session_key=sha256(affinity.encode()).hexdigest() if affinity else None
        ),
    )
