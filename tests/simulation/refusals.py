"""The ways in which a caller is told that it gets no more: each must occur in some world."""

from __future__ import annotations

from services.shared.stream.events import Failed

REFUSALS = {
    "the queue is full": "generations wait for a replica, ",
    "its place went to another tenant": "and a tenant with fewer of them needed a place",
    "its deadline is out of reach": "must be within the time that the generation has left",
    "its deadline is over": "ms are over after",
    "no replica can take it": "no replica can take the generation",
    "no replica came in time": "s for one",
    "the retry budget is used up": "the retry budget is used up",
    "the router drains": "the router is draining",
    "the router leaves": "the router is leaving",
    "the router is gone": "the session to the router ended",
    "another model": "is not served here",
    "a token ID beyond the vocabulary": "must be below",
    "a prompt beyond the context": "prompt must be shorter than the context",
    "what no engine does": "is not supported by this engine",
}
"""By what their messages hold."""


def refusals_of(failed: Failed) -> list[str]:
    return [name for name, fragment in REFUSALS.items() if fragment in failed.message]
