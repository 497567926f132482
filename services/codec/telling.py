"""What account and caller are told of an answer besides its words, while it is under way."""

from __future__ import annotations

from dataclasses import replace

from services.codec.answer import Answer
from services.codec.events import Heartbeat, OutputEvent, Start, Usage
from services.codec.exchange import Exchange
from services.codec.request import Request
from services.codec.told_timeline import ToldTimeline


def wanting(request: Request, timeline: str | None) -> Request:
    """The request with what its caller says in `HEADER`: 1, or nothing."""
    delivery = replace(request.delivery, timeline=timeline == "1")
    return replace(request, delivery=delivery)


def note(batch: list[OutputEvent], answer: Answer, exchange: Exchange) -> None:
    """Notes when the first token came, and the way that it took."""
    account = exchange.account
    if account.first_s is None and any(not isinstance(one, (Start, Heartbeat)) for one in batch):
        account.first_s = exchange.elapsed_s()
    if answer.routed:
        exchange.figures["routed"] = answer.routed


def with_timeline(
    batch: list[OutputEvent], answer: Answer, exchange: Exchange
) -> list[OutputEvent]:
    """The batch; the usage, with which an answer ends, tells where the time went."""
    return [
        replace(event, timeline=_timeline(answer, exchange)) if isinstance(event, Usage) else event
        for event in batch
    ]


def _timeline(answer: Answer, exchange: Exchange) -> ToldTimeline:
    answer.tell(exchange.account)
    return ToldTimeline.of(
        exchange.account,
        request_id=exchange.request_id,
        trace_id=exchange.trace.trace_id,
        total_s=exchange.elapsed_s(),
    )
