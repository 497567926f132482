"""Usage while an answer is under way."""

from __future__ import annotations

from services.codec.events import OutputEvent, ReasoningDelta, Start, TextDelta, Usage


class RunningUsage:
    """Counts the tokens that deltas release; Start and the final Usage are taken as they are."""

    def __init__(self) -> None:
        self.now = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0)

    def take(self, event: OutputEvent) -> None:
        match event:
            case Start():
                self._set(event.prompt_tokens, event.cached_tokens, 0, 0)
            case TextDelta(tokens=tokens) if tokens:
                self._add(len(tokens), 0)
            case ReasoningDelta(tokens=tokens) if tokens:
                self._add(len(tokens), len(tokens))
            case Usage():
                self.now = event
            case _:
                pass

    def _add(self, tokens: int, reasoning: int) -> None:
        now = self.now
        self._set(
            now.prompt_tokens,
            now.cached_tokens,
            now.completion_tokens + tokens,
            now.reasoning_tokens + reasoning,
        )

    def _set(self, prompt: int, cached: int, completion: int, reasoning: int) -> None:
        self.now = Usage(
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=completion,
            reasoning_tokens=reasoning,
        )
