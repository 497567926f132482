"""When a prompt is computed at one replica for another, and when it is fetched."""

from __future__ import annotations

from dataclasses import dataclass

from services.shared.bounds import within

MAX_TOKENS = 2**24


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefillRules:
    """Tokens of a prompt that are worth a way to another replica; 0 never goes it.

    Args:
        threshold_tokens: cached nowhere, from which on a prefill replica computes the prompt.
        peer_tokens: that another replica has beyond those of the chosen one, from which on they
            are fetched there.
    """

    threshold_tokens: int = 512
    peer_tokens: int = 64

    def __post_init__(self) -> None:
        within("threshold_tokens", self.threshold_tokens, 0, MAX_TOKENS)
        within("peer_tokens", self.peer_tokens, 0, MAX_TOKENS)
