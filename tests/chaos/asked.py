"""The requests of a chaos run: some of each kind, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.faults.asked import CHAT, MESSAGES, PERSON, Asked

WORDS = ("sea", "wind", "lamp", "stone", "river", "glass", "horse", "bread", "cloud", "paper")
LONGEST_TOKENS = 160
LONGEST_PROMPT_WORDS = 400


def drawn(chance: Random, model: str, count: int) -> Sequence[Asked]:
    """So many different requests; what each is answered depends on its body alone."""
    return [_one(chance, model, number) for number in range(count)]


def _one(chance: Random, model: str, number: int) -> Asked:
    path, kinds = chance.choice([(CHAT, _OF_CHAT), (MESSAGES, _OF_MESSAGES)])
    kind = chance.choice(list(kinds))
    streamed = chance.random() < 0.6
    words = chance.choices(WORDS, k=chance.choice([5, 20, 60, LONGEST_PROMPT_WORDS]))
    body = {
        "model": model,
        "messages": [{"role": "user", "content": f"{number}: {' '.join(words)}"}],
        "max_tokens": chance.randint(1, LONGEST_TOKENS),
        "seed": chance.randrange(2**32),
        "temperature": chance.choice([0, 0.7, 1]),
        "stream": streamed,
        **kinds[kind](chance),
    }
    if chance.random() < 0.3:
        body["cache_salt"] = str(number)
    if streamed and path == CHAT:
        body["stream_options"] = {"include_usage": True}
    return Asked(name=f"{number} {path.rpartition('/')[2]} {kind}", path=path, body=body)


def _plain(_: Random) -> dict[str, Any]:
    return {"ignore_eos": True}


def _several(chance: Random) -> dict[str, Any]:
    return {"ignore_eos": True, "n": chance.randint(2, 3)}


def _stopped(chance: Random) -> dict[str, Any]:
    """Most letters come at some time."""
    return {"ignore_eos": True, "stop": [chance.choice("abcdefgh") + chance.choice("aeiou")]}


def _stopped_message(chance: Random) -> dict[str, Any]:
    asked = _stopped(chance)
    return {"ignore_eos": True, "stop_sequences": asked["stop"]}


def _scored(_: Random) -> dict[str, Any]:
    return {"ignore_eos": True, "logprobs": True, "top_logprobs": 1, "return_token_ids": True}


def _formed(_: Random) -> dict[str, Any]:
    schema = {"name": "person", "schema": PERSON}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _formed_message(_: Random) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": PERSON}}}


Kind = Callable[[Random], dict[str, Any]]

_OF_CHAT: dict[str, Kind] = {
    "plain": _plain,
    "several": _several,
    "stopped": _stopped,
    "scored": _scored,
    "formed": _formed,
}
_OF_MESSAGES: dict[str, Kind] = {
    "plain": _plain,
    "stopped": _stopped_message,
    "formed": _formed_message,
}
