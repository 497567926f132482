"""Fields that would change the answer and are not delivered: refused by name."""

from __future__ import annotations

from services.codec.protocols.fields import Fields, flag, items, text
from services.shared.errors import Unsupported

_NEVER = (
    "web_search_options",
    "chat_template",
    "logits_processors",
    "bad_words",
    "allowed_token_ids",
    "prompt_logprobs",
)
_FLAGS = ("echo", "use_beam_search")


def refuse_unsupported(chat: Fields) -> None:
    for name in _NEVER:
        if chat.has(name) and chat.values[name] != []:
            raise _unsupported(name)
    for name in _FLAGS:
        if chat.optional(name, flag):
            raise _unsupported(name)
    for modality in chat.optional("modalities", items) or []:
        if text(modality) != "text":
            raise Unsupported(
                f"modalities must be text alone, got {modality.shown()}", field="modalities"
            )


def _unsupported(name: str) -> Unsupported:
    return Unsupported(f"{name} is not supported", field=name)
