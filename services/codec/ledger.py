"""The tokens of one output that were not released yet, with where the text of each ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.codec.events import Likelihood, ReleasedToken
from services.codec.tokenizer import Tokenizer
from services.shared.stream.events import Logprobs


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenWish:
    """What is told of tokens beside their text: IDs of all, likelihoods of those that show text."""

    ids: bool = False
    likelihoods: bool = False


class Ledger:
    """Tokens enter in order and leave in order, when the text that they stand for leaves."""

    def __init__(self, tokenizer: Tokenizer, wish: TokenWish) -> None:
        self._tokenizer = tokenizer
        self._wish = wish
        self._waiting: deque[tuple[int, ReleasedToken]] = deque()

    def enter(self, token: int, end: int, likelihoods: Sequence[Likelihood]) -> None:
        """`end` is where the token's text ends; `likelihoods` are its own and the top ones."""
        if likelihoods:
            chosen, *top = likelihoods
            released = ReleasedToken(token_id=token, likelihood=chosen, top=tuple(top))
        else:
            released = ReleasedToken(token_id=token)
        self._waiting.append((end, released))

    def release(self, start: int, end: int) -> tuple[ReleasedToken, ...]:
        """The tokens whose text ends up to `end`; those from `start` on have shown it.

        Tokens that show nothing have no likelihood, and are told only where all IDs are.
        """
        released = []
        while self._waiting and self._waiting[0][0] <= end:
            place, token = self._waiting.popleft()
            if token.likelihood is not None and place <= start:
                token = replace(token, likelihood=None, top=())
            if self._wish.ids or token.likelihood is not None:
                released.append(token)
        return tuple(released)

    def likelihoods(self, logprobs: Logprobs, at: int, token: int) -> list[Likelihood]:
        """Of one of the tokens that `logprobs` tells of: its own, then the most likely ones."""
        count = len(logprobs.chosen)
        size = len(logprobs.top_token_ids) // count if count else 0
        top = slice(at * size, (at + 1) * size)
        pairs = zip(logprobs.top_token_ids[top], logprobs.top_logprobs[top], strict=True)
        all_pairs = [(token, logprobs.chosen[at]), *pairs]
        token_bytes = self._tokenizer.token_bytes
        return [
            Likelihood(token_id=index, bytes=token_bytes(index), logprob=value)
            for index, value in all_pairs
        ]
