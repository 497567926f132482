"""What is known of a request when it has ended, for those who keep books. No content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from services.shared.stream.events import CachedTokens, Timeline


class Outcome(StrEnum):
    """How a request ended. Refused: with an error, before an engine was asked for an answer."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(kw_only=True, slots=True)
class Account:
    """What a request comes to, written while it runs.

    Attributes:
        operation: the protocol that it speaks, by name; None before its body was read.
        model: as the caller named it.
        stream: whether it is answered as a stream.
        choices: generations that it asks for.
        is_submitted: whether an engine was asked.
        prompt_tokens: of all prompts.
        cached: prompt tokens that needed no computing, by tier.
        completion_tokens: of all outputs so far.
        encoded_s: seconds from its beginning until the prompts were token IDs.
        first_s: seconds from its beginning to the first token that could be told.
        routed: why it went where it went.
        filter_rules: of the content filter, by which the prompt or outputs were blocked.
        timelines: of the generations that ended by themselves, by choice.
    """

    operation: str | None = None
    model: str | None = None
    stream: bool = False
    choices: int = 1
    is_submitted: bool = False
    prompt_tokens: int = 0
    cached: CachedTokens = CachedTokens()
    completion_tokens: int = 0
    encoded_s: float | None = None
    first_s: float | None = None
    routed: str = ""
    filter_rules: list[str] = field(default_factory=list)
    timelines: dict[int, Timeline] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRecord:
    """A request that has ended.

    Args:
        request_id: as the caller was told.
        trace_id: 32 hexadecimal digits.
        door: http or grpc.
        path: of HTTP, or the name of the protocol.
        tenant: None where nobody is asked for a key.
        key_id: names what the caller showed.
        began_at: seconds since 1970.
        duration_s: until its last byte was sent.
        outcome: how it ended.
        error: the kind of error, by its class; None where there was none.
        account: what it came to.
    """

    request_id: str
    trace_id: str
    door: str
    path: str
    tenant: str | None
    key_id: str | None
    began_at: float
    duration_s: float
    outcome: Outcome
    error: str | None
    account: Account


Listener = Callable[[RequestRecord], None]
"""Hears of a request at its end, on the event loop: it must neither wait nor fail."""
