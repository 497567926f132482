"""What comes out of a generation as text: flat, ordered, without any protocol's bookkeeping.

For each request: Start, then for each choice deltas and calls, then its Finish, then Usage; Error
may take the place of anything after Start. Heartbeats stand anywhere. A call is ToolStart, then
ToolArguments, then ToolEnd; calls of one choice follow one another and are numbered from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from services.codec.told_timeline import ToldTimeline
from services.shared.errors import ServiceError


class EndReason(Enum):
    """Why an output is complete."""

    END_OF_TEXT = "end_of_text"
    STOP_TOKEN = "stop_token"  # noqa: S105 no password
    STOP_STRING = "stop_string"
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Each prompt was taken. Both counts are of all prompts.

    Args:
        prompt_ids: of the one prompt, where they are wanted.
        prompt_texts: of all prompts, where they are wanted.
    """

    prompt_tokens: int
    cached_tokens: int
    prompt_ids: tuple[int, ...] | None = None
    prompt_texts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Likelihood:
    """A token and its log-probability."""

    token_id: int
    bytes: bytes
    logprob: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleasedToken:
    """A token whose last byte a delta releases; `likelihood` and `top` where they are wanted."""

    token_id: int
    likelihood: Likelihood | None = None
    top: tuple[Likelihood, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of visible text; empty only to release tokens that show none."""

    text: str
    choice: int = 0
    tokens: tuple[ReleasedToken, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of what the model thinks before it answers."""

    text: str
    choice: int = 0
    tokens: tuple[ReleasedToken, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStart:
    """A call begins; its name is whole."""

    index: int
    call_id: str
    name: str
    choice: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolArguments:
    """The next fragment of a call's arguments; all of them together are a prefix of JSON text."""

    index: int
    fragment: str
    choice: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEnd:
    """A call is complete: `arguments` is all of it, `valid` whether it is a JSON object."""

    index: int
    arguments: str
    valid: bool
    choice: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish:
    """An output is complete; `stop` is the stop string that ended it."""

    reason: EndReason
    stop: str | None = None
    choice: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of the whole request, as far as it has come: cached ones are among the prompt's.

    Args: timeline: where the time went, where that is wanted, at the end.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0
    timeline: ToldTimeline | None = None


@dataclass(frozen=True, slots=True)
class Error:
    """The answer breaks off."""

    error: ServiceError


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing new, but alive."""


Delta = TextDelta | ReasoningDelta
ToolEvent = ToolStart | ToolArguments | ToolEnd
OutputEvent = Start | Delta | ToolEvent | Finish | Usage | Error | Heartbeat
