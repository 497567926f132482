"""Tokens of a prompt and text of tokens, as other servers tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.codec.protocols.chat_completions import request as chat
from services.codec.protocols.fields import Fields, integer, list_of, text
from services.codec.protocols.reading import Reading
from services.codec.protocols.reply import json_bytes
from services.codec.request import RawPrompts, Request, TextPrompt, TokenPrompt

MAX_TOKENS = 10_000_000


def parse_text(reading: Reading, body: bytes) -> Request:
    """A conversation as Chat Completions has it, or a prompt that is whole."""
    asked = reading.fields(body)
    if asked.has("messages"):
        return chat.parse(reading, body)
    prompt = TextPrompt(asked.required("prompt", text), asked.flag("parse_special", default=True))
    return Request(model=_model(asked, reading), prompt=RawPrompts((prompt,)))


def parse_tokens(reading: Reading, body: bytes) -> Request:
    asked = reading.fields(body)
    token = integer(0, reading.vocabulary_size - 1)
    ids = asked.required("tokens", list_of(token, at_most=MAX_TOKENS))
    return Request(model=_model(asked, reading), prompt=RawPrompts((TokenPrompt(tuple(ids)),)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """IDs of a prompt, the context they must fit, and the text of each where it is wanted."""

    ids: Sequence[int]
    context_length: int | None
    strings: list[str] | None = None

    def told(self) -> bytes:
        return json_bytes(
            {
                "count": len(self.ids),
                "max_model_len": self.context_length,
                "tokens": list(self.ids),
                "token_strs": self.strings,
            }
        )


def text_told(prompt: str) -> bytes:
    return json_bytes({"prompt": prompt})


def _model(asked: Fields, reading: Reading) -> str:
    """The model may be left out: there is one."""
    return asked.optional("model", text) or reading.model
