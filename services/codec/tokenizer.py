"""The model's vocabulary: text to token IDs without control tokens, and the bytes of each ID."""

from __future__ import annotations

from services.shared.model_folder import ModelFolder


class Tokenizer:
    """Tokens of a model folder."""

    vocabulary_size: int
    control_ids: frozenset[int]
    eos_ids: frozenset[int]

    def __init__(self, folder: ModelFolder) -> None:
        raise NotImplementedError

    def token_bytes(self, token: int) -> bytes:
        """Bytes that the token stands for; none for an ID beyond the vocabulary."""
        raise NotImplementedError

    def token_text(self, token: int) -> str:
        """The token as text for humans; an incomplete character shows as U+FFFD."""
        raise NotImplementedError
