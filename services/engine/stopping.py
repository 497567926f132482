"""When an output ends: at a token of the model or the caller, at a length, or never by itself."""

from __future__ import annotations

from dataclasses import dataclass

from services.engine.sequence import Sequence
from services.shared.stream.events import FinishReason


@dataclass(frozen=True, slots=True)
class End:
    """Why an output ended, and the stop token where one ended it."""

    reason: FinishReason
    stop_token_id: int | None = None


class Stopper:
    """Judges sequences by their last token.

    Args:
        end_of_text_ids: tokens by which the model ends its text.
        context_length: tokens that prompt and output may have together.
    """

    def __init__(self, end_of_text_ids: frozenset[int], context_length: int) -> None:
        self._end_of_text_ids = end_of_text_ids
        self._context_length = context_length

    def banned(self, sequence: Sequence) -> frozenset[int]:
        """Tokens that must not be drawn next, since min_tokens are not reached."""
        stopping = sequence.generation.stopping
        if sequence.position >= stopping.min_tokens:
            return frozenset()
        return self._end_of_text_ids | set(stopping.stop_token_ids)

    def end(self, sequence: Sequence) -> End | None:
        """The end that the tokens so far bring, if any."""
        stopping = sequence.generation.stopping
        if sequence.position > stopping.min_tokens:
            token = sequence.tokens[-1]
            if token in self._end_of_text_ids and not stopping.ignore_eos:
                return End(FinishReason.END_OF_TEXT, token)
            if token in stopping.stop_token_ids:
                return End(FinishReason.STOP_TOKEN, token)
        if sequence.matcher is not None and sequence.matcher.complete:
            return End(FinishReason.CONSTRAINT_COMPLETE)
        if stopping.max_tokens is not None and sequence.position >= stopping.max_tokens:
            return End(FinishReason.MAX_TOKENS)
        if len(sequence.tokens) >= self._context_length:
            return End(FinishReason.CONTEXT_FULL)
        return None
