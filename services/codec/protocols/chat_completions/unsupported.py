"""Fields that would change the answer and are not delivered: refused by name."""

from __future__ import annotations

from typing import Any

from services.codec.protocols.fields import Fields, fields, flag, integer, text
from services.shared.errors import InvalidRequest, Unsupported

_NEVER = (
    "functions",
    "web_search_options",
    "chat_template",
    "logits_processors",
    "bad_words",
    "allowed_token_ids",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "prompt_logprobs",
)
_FLAGS = ("logprobs", "return_token_ids", "echo", "use_beam_search")


def refuse_unsupported(chat: Fields) -> None:
    for name in _NEVER:
        if chat.has(name) and chat.values[name] != []:
            raise _unsupported(name)
    for name in _FLAGS:
        if chat.optional(name, flag):
            raise _unsupported(name)
    if chat.optional("top_logprobs", integer(0, 20)):
        raise InvalidRequest("top_logprobs needs logprobs to be true", field="top_logprobs")
    _only("n", chat.optional("n", integer(1, 128)), 1)
    _only("modalities", chat.values.get("modalities"), ["text"])
    response_format = chat.optional("response_format", fields)
    if response_format is not None:
        _only("response_format.type", response_format.required("type", text), "text")
    if not chat.flag("add_generation_prompt", default=True) and not chat.flag(
        "continue_final_message"
    ):
        raise Unsupported(
            "add_generation_prompt must be true unless continue_final_message is",
            field="add_generation_prompt",
        )


def _unsupported(name: str) -> Unsupported:
    return Unsupported(f"{name} is not supported", field=name)


def _only(name: str, value: Any, supported: Any) -> None:
    if value is not None and value != supported:
        raise Unsupported(f"{name} must be {supported}, other values are not supported", field=name)
