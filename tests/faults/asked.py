"""What tests ask while something breaks: each way of ending and drawing, in two protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
TOKENS = 24
PROMPT = "Tell me a story about the sea."

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "colour": {"enum": ["red", "green"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "colour", "age"],
    "additionalProperties": False,
}

GREEDY = {"temperature": 0, "seed": 1, "ignore_eos": True}
DRAWN = {"temperature": 1, "seed": 5, "ignore_eos": True}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One request; its answer depends on nothing but its body."""

    name: str
    path: str
    body: Mapping[str, Any]

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))


def leader(model: str) -> Asked:
    """A stream that names each token: by it one sees how far all have come."""
    return _streamed(_chat("token IDs", model, **GREEDY, return_token_ids=True))


def all_asked(model: str, stop: str) -> Sequence[Asked]:
    """All others, whole and streamed.

    Args:
        model: the model's name.
        stop: a text in the middle of what the leader is told.
    """
    whole = [*_of_chat(model, stop), *_of_messages(model, stop)]
    return [*whole, *map(_streamed, whole)]


def _of_chat(model: str, stop: str) -> Sequence[Asked]:
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    tool = {"name": "remember", "description": "Remembers a person.", "parameters": PERSON}
    return [
        _chat("greedy", model, **GREEDY),
        _chat("drawn", model, **DRAWN),
        _chat("penalties", model, **DRAWN, presence_penalty=1, frequency_penalty=1, min_tokens=9),
        _chat("log-probabilities", model, **DRAWN, logprobs=True, top_logprobs=2),
        _chat("schema", model, temperature=1, seed=5, response_format=schema),
        _chat("stop", model, **GREEDY, stop=[stop]),
        _chat(
            "tool",
            model,
            temperature=1,
            seed=5,
            tools=[{"type": "function", "function": tool}],
            tool_choice="required",
        ),
        _chat("two", model, **DRAWN, n=2),
    ]


def _of_messages(model: str, stop: str) -> Sequence[Asked]:
    tool = {"name": "remember", "description": "Remembers a person.", "input_schema": PERSON}
    schema = {"format": {"type": "json_schema", "schema": PERSON}}
    return [
        _messages("greedy", model, **GREEDY),
        _messages("drawn", model, **DRAWN),
        _messages("schema", model, temperature=1, seed=5, output_config=schema),
        _messages("stop", model, **GREEDY, stop_sequences=[stop]),
        _messages("tool", model, temperature=1, seed=5, tools=[tool], tool_choice={"type": "any"}),
    ]


def _chat(name: str, model: str, **asked: Any) -> Asked:
    return Asked(name=f"chat {name}", path=CHAT, body=_body(model, asked))


def _messages(name: str, model: str, **asked: Any) -> Asked:
    return Asked(name=f"messages {name}", path=MESSAGES, body=_body(model, asked))


def _body(model: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    messages = [{"role": "user", "content": PROMPT}]
    return {"model": model, "messages": messages, "max_tokens": TOKENS, **asked}


def _streamed(whole: Asked) -> Asked:
    options = {"stream_options": {"include_usage": True}} if whole.path == CHAT else {}
    body = {**whole.body, "stream": True, **options}
    return Asked(name=f"{whole.name}, streamed", path=whole.path, body=body)
