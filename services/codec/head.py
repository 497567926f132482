"""The head of a prompt: what its system prompt and tools make of it, whatever is said then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.codec.conversation import Conversation, Role, Text

SHOWN_CHARACTERS = 256
"""So much of the first text that is said tells where it is."""


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """Token IDs, of which the first `head_tokens` are the head's, as far as that is certain."""

    ids: list[int]
    head_tokens: int = 0


def head_pieces(conversation: Conversation, pieces: Iterable[str]) -> int:
    """How many of the texts between a prompt's control tokens come before all that is said.

    It may be fewer than there are: text that looks like the first that is said counts as such. 0
    where there is neither system prompt nor tool, or nothing is said.
    """
    said = _first_said(conversation)
    if not said or not _has_head(conversation):
        return 0
    return next((at for at, text in enumerate(pieces) if said in text), 0)


def _has_head(conversation: Conversation) -> bool:
    turns = conversation.turns
    return bool(conversation.tools) or (bool(turns) and turns[0].role is Role.SYSTEM)


def _first_said(conversation: Conversation) -> str:
    """The beginning of the first text of the first turn that is not the system's."""
    turn = next((turn for turn in conversation.turns if turn.role is not Role.SYSTEM), None)
    if turn is None or not turn.parts or not isinstance(turn.parts[0], Text):
        return ""
    return turn.parts[0].text.strip()[:SHOWN_CHARACTERS].rstrip()
