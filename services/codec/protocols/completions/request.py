"""A body of Completions as a request. The caller owns the whole prompt, control tokens included."""

from __future__ import annotations

from services.codec.protocols.chat_completions.delivery import continuous_usage, usage_at_end
from services.codec.protocols.fields import Fields, Value, integer, items, list_of, text
from services.codec.protocols.output_format import chat_format, extended_format
from services.codec.protocols.reading import Reading
from services.codec.protocols.sampling import (
    MAX_COUNT,
    cache_salt_of,
    choices_of,
    ending_of,
    priority_of,
    sampling_of,
    stop_strings,
)
from services.codec.request import Delivery, RawPrompts, Request, TextPrompt, TokenPrompt
from services.shared.errors import InvalidRequest, Unsupported

DEFAULT_MAX_TOKENS = 16
MAX_PROMPTS = 128
MAX_LOGPROBS = 20
MAX_PROMPT_TOKENS = 10_000_000


def parse(reading: Reading, body: bytes) -> Request:
    """Raises InvalidRequest naming the field, the limit and the value."""
    asked = reading.fields(body)
    model = asked.required("model", text)
    prompts = _prompts_of(asked, reading.vocabulary_size)
    _refuse_unsupported(asked)
    limit = asked.optional("max_tokens", integer(0, MAX_COUNT))
    max_tokens = DEFAULT_MAX_TOKENS if limit is None else limit
    stop = asked.optional("stop", stop_strings) or ()
    return Request(
        model=model,
        prompt=prompts,
        sampling=sampling_of(asked, reading.vocabulary_size),
        ending=ending_of(asked, reading.vocabulary_size, max_tokens=max_tokens, stop=stop),
        delivery=_delivery(asked),
        cache_salt=cache_salt_of(asked),
        affinity=asked.optional("user", text),
        choices=_choices(asked, len(prompts.prompts)),
        output_format=extended_format(asked) or asked.optional("response_format", chat_format),
        priority=priority_of(asked),
    )


def _delivery(asked: Fields) -> Delivery:
    return Delivery(
        stream=asked.flag("stream"),
        show_control_tokens=not asked.flag("skip_special_tokens", default=True),
        usage_at_end=usage_at_end(asked),
        continuous_usage=continuous_usage(asked),
        top_logprobs=asked.optional("logprobs", integer(0, MAX_LOGPROBS)),
        token_ids=asked.flag("return_token_ids"),
        echo=asked.flag("echo"),
    )


def _choices(asked: Fields, prompts: int) -> int:
    """`best_of` more than are told would need every output to be weighed."""
    choices = choices_of(asked)
    best_of = asked.optional("best_of", integer(1, MAX_PROMPTS))
    if best_of is not None and best_of != choices:
        raise Unsupported(f"best_of must be n, which is {choices}, got {best_of}", field="best_of")
    if choices * prompts > MAX_PROMPTS:
        raise InvalidRequest(
            f"n times the prompts must be <= {MAX_PROMPTS}, got {choices * prompts}", field="n"
        )
    return choices


def _refuse_unsupported(asked: Fields) -> None:
    if asked.optional("suffix", text):
        raise Unsupported("suffix is not supported: the model fills no gaps", field="suffix")
    for name in ("prompt_logprobs", "bad_words", "allowed_token_ids", "logits_processors"):
        if asked.has(name) and asked.values[name] != []:
            raise Unsupported(f"{name} is not supported", field=name)
    if asked.flag("echo") and asked.has("logprobs"):
        raise Unsupported("logprobs must not be given with echo", field="logprobs")


def _prompts_of(asked: Fields, vocabulary_size: int) -> RawPrompts:
    """A text, token IDs, or a list of either."""
    parse_special = asked.flag("parse_special", default=True)
    given = asked.required("prompt", lambda value: value)
    if isinstance(given.json, str):
        return RawPrompts((TextPrompt(text(given), parse_special),))
    values = items(given)
    if values and type(values[0].json) in (int, float):
        return RawPrompts((_token_prompt(given, vocabulary_size),))
    if not 1 <= len(values) <= MAX_PROMPTS:
        raise InvalidRequest(
            f"prompt must have 1 to {MAX_PROMPTS} items, got {len(values)}", field="prompt"
        )
    return RawPrompts(
        tuple(
            TextPrompt(text(value), parse_special)
            if isinstance(value.json, str)
            else _token_prompt(value, vocabulary_size)
            for value in values
        )
    )


def _token_prompt(value: Value, vocabulary_size: int) -> TokenPrompt:
    token = integer(0, vocabulary_size - 1)
    return TokenPrompt(tuple(list_of(token, at_least=1, at_most=MAX_PROMPT_TOKENS)(value)))
