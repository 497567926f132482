"""One generation: a prompt of token IDs and how to go on from it. What is built is valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from services.shared.errors import InvalidRequest, MissingField
from services.shared.stream.limits import above_zero, at_most, within

MAX_REQUEST_ID_CHARACTERS = 128
MAX_STOP_TOKENS = 1024
MAX_LOGIT_BIASES = 1024
MAX_LOGPROBS = 20
MAX_SEED = 2**64 - 1
MAX_SALT_BYTES = 64
MAX_TIMEOUT_MS = 2**32 - 1
MIN_WEIGHT, MAX_WEIGHT = 0.001, 1000.0


class PriorityClass(IntEnum):
    """How urgent a generation is."""

    INTERACTIVE = 1
    BATCH = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How the next token is drawn; None leaves a step out. Ranges are those of the contract."""

    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        within("sampling.temperature", self.temperature, 0, 2)
        above_zero("sampling.top_p", self.top_p, 1)
        within("sampling.top_k", self.top_k, 1, 2**31 - 1)
        within("sampling.min_p", self.min_p, 0, 1)
        within("sampling.presence_penalty", self.presence_penalty, -2, 2)
        within("sampling.frequency_penalty", self.frequency_penalty, -2, 2)
        above_zero("sampling.repetition_penalty", self.repetition_penalty, 2)
        within("sampling.seed", self.seed, 0, MAX_SEED)
        at_most("sampling.logit_bias", self.logit_bias, MAX_LOGIT_BIASES)
        for index, (_, bias) in enumerate(self.logit_bias):
            within(f"sampling.logit_bias[{index}].bias", bias, -100, 100)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopping:
    """When the output ends. `max_tokens` 0 computes the prompt and generates nothing."""

    max_tokens: int | None = None
    min_tokens: int = 0
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        within("stopping.max_tokens", self.max_tokens, 0, 2**31 - 1)
        within("stopping.min_tokens", self.min_tokens, 0, 2**31 - 1)
        at_most("stopping.stop_token_ids", self.stop_token_ids, MAX_STOP_TOKENS)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise InvalidRequest(
                f"min_tokens must be <= max_tokens {self.max_tokens}, got {self.min_tokens}",
                field="stopping.min_tokens",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What is told beside the IDs: how many most likely tokens with their log-probabilities."""

    logprobs: int | None = None
    prompt_logprobs: int | None = None

    def __post_init__(self) -> None:
        within("output.logprobs", self.logprobs, 0, MAX_LOGPROBS)
        within("output.prompt_logprobs", self.prompt_logprobs, 0, MAX_LOGPROBS)


class ConstraintKind(IntEnum):
    """The notation of a constraint."""

    JSON_SCHEMA = 1
    REGEX = 2
    GRAMMAR = 3


@dataclass(frozen=True, slots=True)
class Constraint:
    """A language that the output must belong to."""

    kind: ConstraintKind
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class QualityOfService:
    """Who asks, how urgent it is, how many milliseconds are left, and the tenant's weight."""

    priority_class: PriorityClass = PriorityClass.INTERACTIVE
    tenant: str | None = None
    timeout_ms: int | None = None
    weight: float | None = None

    def __post_init__(self) -> None:
        within("quality_of_service.timeout_ms", self.timeout_ms, 1, MAX_TIMEOUT_MS)
        within("quality_of_service.weight", self.weight, MIN_WEIGHT, MAX_WEIGHT)


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheControl:
    """What the generation may do with cached blocks; salts keep blocks apart.

    The blocks of the first `pinned_tokens` of its prompt are kept before others.
    """

    salt: bytes = b""
    read: bool = True
    write: bool = True
    pinned_tokens: int = 0

    def __post_init__(self) -> None:
        at_most("cache.salt", self.salt, MAX_SALT_BYTES)
        within("cache.pinned_tokens", self.pinned_tokens, 0, 2**31 - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoutingHints:
    """Where the generation would be served best, and the only model version that may serve it.

    `prefill_computes`: the peer is about to compute the prompt.
    """

    session_key: str | None = None
    prefill_peer: str | None = None
    model_version: str | None = None
    prefill_computes: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """A request for tokens.

    Args:
        request_id: names it in logs and traces.
        prompt_ids: at least one token ID.
        generated_ids: outputs delivered before; the next one has position len(generated_ids).
    """

    request_id: str
    prompt_ids: Sequence[int]
    model: str = ""
    generated_ids: Sequence[int] = ()
    sampling: Sampling = Sampling()
    stopping: Stopping = Stopping()
    output: Output = Output()
    constraint: Constraint | None = None
    quality_of_service: QualityOfService = QualityOfService()
    cache: CacheControl = field(default_factory=CacheControl)
    routing: RoutingHints = RoutingHints()

    def __post_init__(self) -> None:
        if not self.prompt_ids:
            raise MissingField("prompt_ids must not be empty", field="prompt_ids")
        at_most("request_id", self.request_id, MAX_REQUEST_ID_CHARACTERS)
        limit = self.stopping.max_tokens
        if limit is not None and len(self.generated_ids) > limit:
            raise InvalidRequest(
                f"generated_ids must have at most max_tokens {limit} tokens, "
                f"got {len(self.generated_ids)}",
                field="generated_ids",
            )
