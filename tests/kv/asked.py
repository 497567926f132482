"""What tests of KV ask: one long prompt, answered in each way that an output can be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.faults.asked import CHAT, DRAWN, GREEDY, PERSON, Asked

WORDS = ("sea", "wind", "lamp", "stone", "river", "glass", "horse", "bread", "cloud", "paper")
"""Each a token, with the space before it."""

SCHEMA_TOKENS = 90
"""More than the schema's longest document has."""


def long_asked(model: str, words: int, tokens: int) -> Sequence[Asked]:
    """Greedy, drawn with log-probabilities, and in a schema; whole and as streams.

    The first is a stream that names each token.

    Args:
        model: the model's name.
        words: of the prompt, about as many tokens.
        tokens: of each output that nothing else ends.
    """
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    scored = {**DRAWN, "logprobs": True, "top_logprobs": 2}
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    text = " ".join(WORDS[at % len(WORDS)] for at in range(words))
    common = {
        "model": model,
        "messages": [{"role": "user", "content": f"Go on with this list: {text}"}],
        "max_tokens": tokens,
    }
    ways: dict[str, dict[str, Any]] = {
        "greedy, streamed": {**GREEDY, **stream, "return_token_ids": True},
        "drawn, streamed": {**scored, **stream},
        "drawn, whole": scored,
        "schema, streamed": {
            "temperature": 1,
            "seed": 5,
            "response_format": schema,
            "max_tokens": SCHEMA_TOKENS,
            **stream,
        },
    }
    return [Asked(name=name, path=CHAT, body={**common, **way}) for name, way in ways.items()]
