"""What every generation must bring: each token depends on prompt, seed and all before it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from zlib import crc32

from services.shared.stream.events import FinishReason
from services.shared.stream.generation import Generation
from tests.simulation.automaton import Automaton

VOCABULARY = 500
END_OF_TEXT_IDS = frozenset(range(8))


def start(generation: Generation, version: str) -> int:
    """The state before the first token; salted as the addresses of blocks are."""
    return crc32(generation.cache.salt, crc32(version.encode()))


def chained(state: int, token_ids: Sequence[int]) -> int:
    """The state after more tokens."""
    return crc32(array("I", token_ids).tobytes(), state)


def drawn(state: int, seed: int, banned: frozenset[int], automaton: Automaton | None) -> int:
    """The token after the tokens that led to `state`; of those allowed the first from a hash on."""
    token = crc32(b"%d" % seed, state) % VOCABULARY
    while token in banned or not (automaton is None or automaton.allows(token)):
        token = (token + 1) % VOCABULARY
    return token


class Oracle:
    """Plays one generation by itself, as no engine does: token after token, with nothing cached.

    Args:
        seed: as the caller was told.
        context_length: tokens that prompt and output may have together.
        version: of the model.
    """

    def __init__(
        self, generation: Generation, seed: int, context_length: int, version: str
    ) -> None:
        self._generation = generation
        self._seed = seed
        self._context_length = context_length
        self._state = chained(start(generation, version), generation.prompt_ids)
        self._automaton = Automaton.of(generation.constraint)
        self.output: list[int] = []
        for token in generation.generated_ids:
            self._append(token)

    def next(self) -> int:
        """The next token; after it the oracle is one position further."""
        token = drawn(self._state, self._seed, self._banned(), self._automaton)
        self._append(token)
        return token

    def end(self) -> FinishReason | None:
        """Why the output is complete now, if it is."""
        stopping, length = self._generation.stopping, len(self.output)
        last = self.output[-1] if self.output and length > stopping.min_tokens else None
        if last in END_OF_TEXT_IDS and not stopping.ignore_eos:
            return FinishReason.END_OF_TEXT
        if last in stopping.stop_token_ids:
            return FinishReason.STOP_TOKEN
        if self._automaton is not None and self._automaton.complete:
            return FinishReason.CONSTRAINT_COMPLETE
        if length == stopping.max_tokens:
            return FinishReason.MAX_TOKENS
        if length + len(self._generation.prompt_ids) >= self._context_length:
            return FinishReason.CONTEXT_FULL
        return None

    def _append(self, token: int) -> None:
        self.output.append(token)
        self._state = chained(self._state, [token])
        if self._automaton is not None:
            self._automaton.accept(token)

    def _banned(self) -> frozenset[int]:
        stopping = self._generation.stopping
        if len(self.output) >= stopping.min_tokens:
            return frozenset()
        return END_OF_TEXT_IDS | frozenset(stopping.stop_token_ids)
