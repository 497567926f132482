"""A request as every protocol understands it: a conversation and how to answer it."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.codec.conversation import Conversation
from services.shared.stream.generation import Sampling


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """When an output ends.

    `max_tokens` is a wish: what does not fit the context is cut to what does.
    """

    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    include_stop: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """How the answer reaches the caller. `usage_at_end` asks a stream for a usage chunk."""

    stream: bool = False
    show_control_tokens: bool = False
    usage_at_end: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a caller asks for.

    Args:
        model: the name as the caller wrote it.
        cache_salt: keeps cached KV apart from that of other salts; empty shares it.
        affinity: requests with equal keys like the same replica.
    """

    model: str
    conversation: Conversation
    sampling: Sampling = field(default_factory=Sampling)
    ending: Ending = field(default_factory=Ending)
    delivery: Delivery = field(default_factory=Delivery)
    cache_salt: bytes = b""
    affinity: str | None = None
