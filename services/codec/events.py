"""What comes out of a generation as text: flat, ordered, without any protocol's bookkeeping.

For each request: Start, then deltas, then one Finish for each choice, then Usage; Error may take
the place of anything after Start. Heartbeats stand anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from services.shared.errors import ServiceError


class EndReason(Enum):
    """Why an output is complete."""

    END_OF_TEXT = "end_of_text"
    STOP_TOKEN = "stop_token"  # noqa: S105 no password
    STOP_STRING = "stop_string"
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """The generation was taken. Both counts are of the prompt."""

    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of visible text, never empty."""

    text: str
    choice: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Finish:
    """An output is complete; `stop` is the stop string that ended it."""

    reason: EndReason
    stop: str | None = None
    choice: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of the whole request, as far as it has come: cached ones are among the prompt's."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Error:
    """The answer breaks off."""

    error: ServiceError


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing new, but alive."""


OutputEvent = Start | TextDelta | Finish | Usage | Error | Heartbeat
