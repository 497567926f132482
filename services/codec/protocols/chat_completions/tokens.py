"""Released tokens as Chat Completions tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.codec.events import Likelihood, ReleasedToken

LOWEST = -9999.0
"""JSON knows no infinity."""


def logprobs_of(tokens: Sequence[ReleasedToken]) -> dict[str, Any]:
    return {"content": logprob_entries(tokens), "refusal": None}


def logprob_entries(tokens: Sequence[ReleasedToken]) -> list[dict[str, Any]]:
    return [
        {**_entry(token.likelihood), "top_logprobs": [_entry(other) for other in token.top]}
        for token in tokens
        if token.likelihood is not None
    ]


def _entry(likelihood: Likelihood) -> dict[str, Any]:
    """`bytes` is the truth; the text of part of a character is not."""
    return {
        "token": likelihood.bytes.decode(errors="replace"),
        "logprob": max(likelihood.logprob, LOWEST),
        "bytes": list(likelihood.bytes),
    }
