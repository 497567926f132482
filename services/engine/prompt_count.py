"""How the tokens of prompts came to have their KV: computed here, or found."""

from __future__ import annotations

from dataclasses import dataclass

from services.shared.stream.events import CachedTokens


@dataclass(slots=True)
class PromptCount:
    """Of one prompt, each token counted once however often it is computed.

    Args:
        tokens: of the prompt.

    Attributes:
        reached: its leading tokens that were found or computed at some time.
        computed: of these, those computed here.
        found_again: of these, those found when it had lost its place and got another.
    """

    tokens: int
    reached: int = 0
    computed: int = 0
    found_again: int = 0
    is_told: bool = False

    def find(self, tokens: int) -> None:
        """So many leading tokens of its sequence were found when it got a place again."""
        more = min(tokens, self.tokens) - self.reached
        if more > 0:
            self.found_again += more
            self.reached += more

    def compute(self, start: int, count: int) -> bool:
        """Counts a work; True where the prompt is complete and nobody was told yet."""
        stop = min(start + count, self.tokens)
        if stop > self.reached:
            self.computed += stop - max(start, self.reached)
            self.reached = stop
        if self.is_told or self.reached < self.tokens:
            return False
        self.is_told = True
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptTokens:
    """Of all prompts that are complete: tokens == computed + cached.total."""

    tokens: int = 0
    computed: int = 0
    cached: CachedTokens = CachedTokens()

    def plus(self, prompt: PromptCount, cached: CachedTokens) -> PromptTokens:
        """Args: cached: as whoever asked was told."""
        return PromptTokens(
            tokens=self.tokens + prompt.tokens,
            computed=self.computed + prompt.computed,
            cached=self.cached + cached + CachedTokens(device=prompt.found_again),
        )
