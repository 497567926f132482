"""A request as every protocol understands it: what to continue and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from services.codec.conversation import Conversation, Tool
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
    """How the answer reaches the caller.

    Args:
        usage_at_end: asks a stream for a usage chunk.
        continuous_usage: asks every chunk of a stream for the usage so far.
        top_logprobs: log-probabilities of each token and of this many most likely ones.
        token_ids: the IDs of prompt and output beside the text.
        echo: the text of the prompt before that of each output.
        timeline: where the time went, with the usage at the end.
    """

    stream: bool = False
    show_control_tokens: bool = False
    usage_at_end: bool = False
    continuous_usage: bool = False
    top_logprobs: int | None = None
    token_ids: bool = False
    echo: bool = False
    timeline: bool = False

    @property
    def wants_tokens(self) -> bool:
        """Whether deltas must name the tokens that they release."""
        return self.token_ids or self.continuous_usage or self.top_logprobs is not None


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """Text that is a whole prompt; control tokens that it spells are read with `parse_special`."""

    text: str
    parse_special: bool = True


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Token IDs that are a whole prompt."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RawPrompts:
    """Prompts without a template, at least one. Output j of prompt i is choice i * choices + j."""

    prompts: tuple[TextPrompt | TokenPrompt, ...]


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Any JSON object."""


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """JSON that a schema accepts; keys keep the caller's order."""

    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Regex:
    """Text that a regular expression matches as a whole."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Grammar:
    """Text of a context-free grammar in Lark syntax."""

    source: str


OutputFormat = JsonObject | JsonSchema | Regex | Grammar


class ReasoningMode(StrEnum):
    """Whether the model thinks before it answers; DEFAULT leaves it to the template."""

    DEFAULT = "default"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningWish:
    """How much to think, and whether the caller gets to see it."""

    mode: ReasoningMode = ReasoningMode.DEFAULT
    effort: str | None = None
    shown: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a caller asks for.

    Args:
        model: the name as the caller wrote it.
        prompt: what to continue.
        cache_salt: keeps cached KV apart from that of other salts; empty shares it.
        affinity: requests with equal keys like the same replica.
        choices: outputs to each prompt, of which output i draws with the seed + i.
        output_format: what the visible text must be; None is free text.
        priority: above 0 the answer may wait for others.
        echo: what the protocol repeats of the body in its answer.
        ignored_tools: kinds of tools of the body that nobody here can run.
    """

    model: str
    prompt: Conversation | RawPrompts
    sampling: Sampling = field(default_factory=Sampling)
    ending: Ending = field(default_factory=Ending)
    delivery: Delivery = field(default_factory=Delivery)
    cache_salt: bytes = b""
    affinity: str | None = None
    choices: int = 1
    output_format: OutputFormat | None = None
    reasoning: ReasoningWish = ReasoningWish()
    priority: int = 0
    echo: Mapping[str, Any] = field(default_factory=dict)
    ignored_tools: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.prompt.tools if isinstance(self.prompt, Conversation) else ()

    @property
    def raw_prompts(self) -> tuple[TextPrompt | TokenPrompt, ...]:
        """None where a conversation is continued."""
        return self.prompt.prompts if isinstance(self.prompt, RawPrompts) else ()
