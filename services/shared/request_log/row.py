"""What is kept of a request: figures and names, no content."""

from __future__ import annotations

import secrets
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationRow:
    """One generation of a request, where it ended by itself. Times are in microseconds.

    Args:
        choice: which of the request's, from 0.
        admission_us: of `queued_us`, until a router had sent it to a replica that took it.
        cache_miss: why the first block that had to be computed was not found; None: none had to.
    """

    choice: int
    fetch_us: int
    queued_us: int
    admission_us: int
    prefill_us: int
    decode_us: int
    preemptions: int
    continuations: int
    cache_miss: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRow:
    """One request that has ended. Times are in microseconds.

    Args:
        entry_id: names the row; a caller may use its own request ID again.
        began_us: since 1970.
        duration_us: until its last byte was sent.
        operation: the protocol it spoke; None where its body was not read.
        model: as the caller named it.
        outcome: `finished`, `cancelled`, `failed` or `refused`.
        error: kind of the error; None where there was none.
        prompt_tokens: those that were found cached included, which are told by tier.
        encoded_us: from the beginning until the prompts were token IDs.
        first_us: from the beginning to the first part of the answer.
        routed: why it went where it went.
        filter_rules: of the content filter, by which prompt or outputs were blocked, with commas
            between; empty where none was.
    """

    entry_id: str
    request_id: str
    trace_id: str
    began_us: int
    duration_us: int
    door: str
    path: str
    operation: str | None
    model: str | None
    tenant: str | None
    key_id: str | None
    outcome: str
    error: str | None
    stream: bool
    choices: int
    prompt_tokens: int
    cached_device_tokens: int
    cached_host_tokens: int
    cached_peer_tokens: int
    cached_service_tokens: int
    completion_tokens: int
    encoded_us: int | None
    first_us: int | None
    routed: str
    filter_rules: str
    generations: tuple[GenerationRow, ...] = ()


def new_entry_id(began_us: int) -> str:
    """32 hexadecimal digits that sort by time, and that no other process gives to another row."""
    return f"{began_us:016x}{secrets.token_hex(8)}"
