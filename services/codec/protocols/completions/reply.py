"""A complete answer as Completions has it, and what its stream shares with it."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Any

from services.codec.events import EndReason, Finish, OutputEvent, ReleasedToken, Start
from services.codec.protocols.chat_completions.reply import usage_object
from services.codec.protocols.chat_completions.tokens import LOWEST
from services.codec.protocols.outputs import Output, collected
from services.codec.protocols.reply import Reply, json_bytes, told

_REASONS = {
    EndReason.MAX_TOKENS: "length",
    EndReason.CONTEXT_FULL: "length",
    EndReason.CONTENT_FILTER: "content_filter",
}
"""All others are `stop`."""


def whole(reply: Reply, events: Sequence[OutputEvent]) -> bytes:
    """The answer as one object; `events` are complete and without Error."""
    answer = collected(events)
    choices = [_choice(reply, answer.start, at, out) for at, out in enumerate(answer.outputs)]
    usage = {"usage": usage_object(answer.usage), **told(answer.usage)}
    return json_bytes({**head(reply), "choices": choices, **usage})


def _choice(reply: Reply, start: Start, index: int, output: Output) -> dict[str, Any]:
    echoed = echo(reply, start, index)
    choice = {
        "index": index,
        "text": echoed + output.text,
        "logprobs": logprobs_of(reply, output.text_tokens, len(echoed)),
        **ending(output.finish),
    }
    if reply.delivery.token_ids:
        choice["token_ids"] = [token.token_id for token in output.tokens]
    return choice


def head(reply: Reply) -> dict[str, Any]:
    """Streams tell objects of the same kind."""
    return {
        "id": f"cmpl-{reply.reply_id}",
        "object": "text_completion",
        "created": reply.created,
        "model": reply.model,
    }


def echo(reply: Reply, start: Start, choice: int) -> str:
    """The prompt of a choice where it is to be told."""
    if not reply.delivery.echo:
        return ""
    return start.prompt_texts[choice // reply.request.choices]


def ending(finish: Finish) -> dict[str, Any]:
    return {"finish_reason": _REASONS.get(finish.reason, "stop"), "stop_reason": finish.stop}


def logprobs_of(
    reply: Reply, tokens: Sequence[ReleasedToken], offset: int
) -> dict[str, Any] | None:
    """Parallel lists; `offset` is the place of the first token in the text, in characters."""
    if reply.delivery.top_logprobs is None:
        return None
    told = [(token.likelihood, token.top) for token in tokens if token.likelihood is not None]
    offsets = []
    decoder = getincrementaldecoder("utf-8")("replace")
    for likelihood, _ in told:
        offsets.append(offset)
        offset += len(decoder.decode(likelihood.bytes))
    return {
        "tokens": [likelihood.bytes.decode(errors="replace") for likelihood, _ in told],
        "token_logprobs": [max(likelihood.logprob, LOWEST) for likelihood, _ in told],
        "top_logprobs": [
            {other.bytes.decode(errors="replace"): max(other.logprob, LOWEST) for other in top}
            for _, top in told
        ],
        "text_offset": offsets,
    }
