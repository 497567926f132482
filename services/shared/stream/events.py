"""What happens to a generation: accepted, tokens, and one end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from services.shared.errors import Code, ServiceError, error_of


class FinishReason(IntEnum):
    """Why an output is complete."""

    END_OF_TEXT = 1
    STOP_TOKEN = 2
    MAX_TOKENS = 3
    CONTEXT_FULL = 4
    CONSTRAINT_COMPLETE = 5


class CancelReason(IntEnum):
    """Why a client ends a generation."""

    UNSPECIFIED = 0
    CLIENT_GONE = 1
    STOP_TEXT = 2
    DEADLINE = 3
    MOVED = 4


class CacheMiss(IntEnum):
    """Why a block was not found, in the last place that was asked."""

    ABSENT = 1
    EVICTED = 2
    TIMEOUT = 3
    CHECKSUM = 4
    LAYOUT = 5
    OFF = 6
    UNREACHABLE = 7
    NO_ROOM = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedTokens:
    """Prompt tokens that need no computing, by where they were found."""

    device: int = 0
    host: int = 0
    peer: int = 0
    service: int = 0

    @property
    def total(self) -> int:
        return self.device + self.host + self.peer + self.service

    def __add__(self, other: CachedTokens) -> CachedTokens:
        return CachedTokens(
            device=self.device + other.device,
            host=self.host + other.host,
            peer=self.peer + other.peer,
            service=self.service + other.service,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens used: the prompt's (cached ones included), the cached among them, the output's."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """Where the time went, in microseconds, and how often the output was interrupted.

    `fetch_us` is before `queued_us`: until the prompt's blocks had come from elsewhere.
    `admission_us` is a part of `queued_us`: until a router sent it to a replica that took it.
    `cache_miss` tells why the first block that had to be computed was not found.
    """

    queued_us: int = 0
    prefill_us: int = 0
    decode_us: int = 0
    preemptions: int = 0
    continuations: int = 0
    fetch_us: int = 0
    cached_tokens: CachedTokens = CachedTokens()
    cache_miss: CacheMiss | None = None
    admission_us: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Logprobs:
    """Log-probabilities of n tokens, flat.

    Args:
        chosen: n values, of the drawn tokens.
        top_token_ids: n times k token IDs, best first within a position.
        top_logprobs: their values.
    """

    chosen: list[float] = field(default_factory=list)
    top_token_ids: list[int] = field(default_factory=list)
    top_logprobs: list[float] = field(default_factory=list)

    def __add__(self, other: Logprobs) -> Logprobs:
        return Logprobs(
            chosen=self.chosen + other.chosen,
            top_token_ids=self.top_token_ids + other.top_token_ids,
            top_logprobs=self.top_logprobs + other.top_logprobs,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The generation was taken; `routed` tells people why it went where it went."""

    prompt_tokens: int
    cached_tokens: CachedTokens
    seed: int
    routed: str = ""


@dataclass(slots=True)
class Tokens:
    """Consecutive output tokens. Not frozen only because one is made per stream and step."""

    first_position: int
    ids: list[int]
    logprobs: Logprobs | None = None

    def followed_by(self, later: Tokens) -> Tokens:
        """Both as one; `later` must begin where this ends."""
        logprobs = self.logprobs
        if logprobs is not None and later.logprobs is not None:
            logprobs = logprobs + later.logprobs
        return Tokens(self.first_position, self.ids + later.ids, logprobs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The output is complete."""

    reason: FinishReason
    usage: Usage
    timeline: Timeline = Timeline()
    stop_token_id: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """The output breaks off.

    Args:
        retryable: another replica may do better.
        retry_after_s: seconds after which it is worth while to ask again, where that can be said.
    """

    code: Code
    message: str
    retryable: bool = False
    field: str | None = None
    retry_after_s: float | None = None

    @classmethod
    def of(cls, error: ServiceError) -> Failed:
        """The failure of a submission; what says "not here, not now" may be tried elsewhere."""
        return cls(
            code=error.code,
            message=error.message,
            retryable=error.code in {Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED},
            field=error.field,
            retry_after_s=error.retry_after_s,
        )

    def error(self) -> ServiceError:
        return error_of(self.code, self.message, self.field, self.retry_after_s)


@dataclass(frozen=True, slots=True)
class Refused:
    """A session's command was ignored; a running stream of that name goes on."""

    message: str


Event = Accepted | Tokens | Finished | Failed
Sink = Callable[[Event], None]
Cancel = Callable[[CancelReason], None]
