"""Sampling and ending as JSON has them: standard fields and the extensions that clients send."""

from __future__ import annotations

import hashlib

from services.codec.protocols.fields import (
    Fields,
    Reader,
    Value,
    filled_text,
    free_object,
    integer,
    items,
    list_of,
    number,
)
from services.codec.request import Ending
from services.shared.errors import InvalidRequest
from services.shared.stream.generation import (
    MAX_LOGIT_BIASES,
    MAX_SEED,
    MAX_STOP_TOKENS,
    Sampling,
)

MAX_COUNT = 2**31 - 1
MAX_CHOICES = 128
MAX_STOPS = 16
MAX_STOP_CHARACTERS = 1024
LEAST_POSITIVE = 2.0**-126
"""The smallest normal float32, as the engine gets it; what is smaller would get there as 0."""


def sampling_of(body: Fields, vocabulary_size: int) -> Sampling:
    top_k = body.optional("top_k", integer(-1, MAX_COUNT))
    seed = body.optional("seed", integer(-(2**63), MAX_SEED))
    temperature = body.optional("temperature", number(0, 2))
    repetition_penalty = body.optional("repetition_penalty", _positive(2))
    return Sampling(
        temperature=1.0 if temperature is None else temperature,
        top_p=body.optional("top_p", _positive(1)),
        top_k=top_k if top_k is not None and top_k > 0 else None,
        min_p=body.optional("min_p", number(0, 1)),
        presence_penalty=body.optional("presence_penalty", number(-2, 2)) or 0.0,
        frequency_penalty=body.optional("frequency_penalty", number(-2, 2)) or 0.0,
        repetition_penalty=1.0 if repetition_penalty is None else repetition_penalty,
        logit_bias=_logit_bias(body, vocabulary_size),
        # Negative seeds keep their bits.
        seed=None if seed is None else seed & MAX_SEED,
    )


def ending_of(
    body: Fields, vocabulary_size: int, *, max_tokens: int | None, stop: tuple[str, ...]
) -> Ending:
    """`max_tokens` and `stop` come from the caller: their names differ between protocols."""
    min_tokens = body.optional("min_tokens", integer(0, MAX_COUNT)) or 0
    if max_tokens is not None and min_tokens > max_tokens:
        raise InvalidRequest(
            f"min_tokens must be <= max_tokens {max_tokens}, got {min_tokens}", field="min_tokens"
        )
    token = integer(0, vocabulary_size - 1)
    stop_tokens = body.optional("stop_token_ids", list_of(token, at_most=MAX_STOP_TOKENS))
    return Ending(
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        ignore_eos=body.flag("ignore_eos"),
        stop_token_ids=tuple(stop_tokens or ()),
        stop=stop,
        include_stop=body.flag("include_stop_str_in_output"),
    )


def stop_strings(value: Value) -> tuple[str, ...]:
    """A stop string or a list of them."""
    values = items(value) if isinstance(value.json, list) else [value]
    if len(values) > MAX_STOPS:
        raise InvalidRequest(
            f"{value.path} must have at most {MAX_STOPS} items, got {len(values)}",
            field=value.path,
        )
    return tuple(_stop_string(item) for item in values)


def choices_of(body: Fields) -> int:
    return body.optional("n", integer(1, MAX_CHOICES)) or 1


def priority_of(body: Fields) -> int:
    return body.optional("priority", integer(-MAX_COUNT, MAX_COUNT)) or 0


def cache_salt_of(body: Fields) -> bytes:
    """The caller's salt as a digest: what the engine gets has one size and no content."""
    salt = body.optional("cache_salt", filled_text)
    return b"" if salt is None else hashlib.sha256(salt.encode()).digest()


def _positive(high: float) -> Reader[float]:
    """Numbers in (0, high] that stay above 0 on the wire."""
    read = number(0, high, above=True)
    return lambda value: max(read(value), LEAST_POSITIVE)


def _stop_string(value: Value) -> str:
    string = filled_text(value)
    if len(string) > MAX_STOP_CHARACTERS:
        raise InvalidRequest(
            f"{value.path} must have at most {MAX_STOP_CHARACTERS} characters, got {len(string)}",
            field=value.path,
        )
    return string


def _logit_bias(body: Fields, vocabulary_size: int) -> tuple[tuple[int, float], ...]:
    biases = body.optional("logit_bias", free_object) or {}
    if len(biases) > MAX_LOGIT_BIASES:
        raise InvalidRequest(
            f"logit_bias must have at most {MAX_LOGIT_BIASES} entries, got {len(biases)}",
            field="logit_bias",
        )
    bias = number(-100, 100)
    return tuple(
        (_token_id(key, vocabulary_size), bias(Value(value, "logit_bias")))
        for key, value in biases.items()
    )


def _token_id(key: str, vocabulary_size: int) -> int:
    is_number = key.isascii() and key.isdigit() and len(key) < 10
    if not is_number or int(key) >= vocabulary_size:
        shown = Value(key, "logit_bias").shown()
        raise InvalidRequest(
            f"logit_bias must have token IDs below {vocabulary_size} as keys, got {shown}",
            field="logit_bias",
        )
    return int(key)
