"""A conversation to the token IDs of its prompt, such that no text can forge a control token."""

from __future__ import annotations

from services.codec.conversation import Conversation
from services.codec.tokenizer import Tokenizer
from services.shared.model_folder import ModelFolder


class PromptEncoder:
    """Applies the model's own chat template and tokenizer. Thread-safe; call it in worker threads.

    Args:
        folder: holds tokenizer.json, tokenizer_config.json and the chat template.
        cache_bytes: memory for pieces of text whose IDs are kept.

    Raises:
        BadModelFolder: a file is missing or wrong, or the construction does not hold for it.
    """

    def __init__(self, folder: ModelFolder, *, cache_bytes: int) -> None:
        self.tokenizer = Tokenizer(folder)
        self._cache_bytes = cache_bytes

    def encode(self, conversation: Conversation) -> list[int]:
        """Token IDs of the prompt. Control tokens come from the template alone.

        Raises:
            InvalidRequest: text that cannot be encoded, or a conversation the template refuses.
        """
        raise NotImplementedError

    def encode_text(self, text: str) -> list[int]:
        """Token IDs of plain text; spelled control tokens stay text."""
        raise NotImplementedError
