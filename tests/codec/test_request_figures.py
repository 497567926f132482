"""What requests came to: by operation, outcome and error, and by nothing that callers name."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from services.codec.listeners import Listeners
from services.codec.metrics import CodecMetrics, Sources
from services.codec.request_figures import Door, Operation, RequestFigures, TokenType
from services.codec.request_record import Account, Outcome, RequestRecord
from services.shared.errors import RateLimited
from services.shared.stream.events import CachedTokens


def record(**changes: Any) -> RequestRecord:
    account = Account(
        operation=changes.pop("operation", "messages"),
        model=changes.pop("model", "m"),
        choices=changes.pop("choices", 1),
        prompt_tokens=changes.pop("prompt", 100),
        cached=CachedTokens(device=32, peer=16),
        completion_tokens=changes.pop("output", 21),
        encoded_s=0.01,
        first_s=changes.pop("first_s", 0.5),
    )
    known: dict[str, Any] = {
        "request_id": "r",
        "trace_id": "0" * 32,
        "door": "http",
        "path": "/v1/messages",
        "tenant": None,
        "key_id": None,
        "began_at": 0.0,
        "duration_s": 2.5,
        "outcome": Outcome.FINISHED,
        "error": None,
        "account": account,
    }
    return RequestRecord(**known | changes)


def test_a_request_counts_by_what_it_asked_and_how_it_ended() -> None:
    figures = RequestFigures()
    figures.hear(record())
    figures.hear(record(operation="completions", door="grpc"))
    figures.hear(record(outcome=Outcome.FAILED, error="DeadlineExceeded"))
    figures.hear(record(operation=None, outcome=Outcome.REFUSED, error="NotFound"))
    assert {key: count for key, count in figures.ended.items() if count} == {
        (Door.HTTP, "messages", Outcome.FINISHED): 1,
        (Door.GRPC, "completions", Outcome.FINISHED): 1,
        (Door.HTTP, "messages", Outcome.FAILED): 1,
        (Door.HTTP, "other", Outcome.REFUSED): 1,
    }
    assert {key: count for key, count in figures.errors.items() if count} == {
        "deadline_exceeded": 1,
        "not_found": 1,
    }
    durations = {key: times.count for key, times in figures.durations.items() if times.count}
    assert durations == {
        (Operation.CHAT, ""): 1,
        (Operation.TEXT_COMPLETION, ""): 1,
        (Operation.CHAT, "deadline_exceeded"): 1,
    }
    assert (figures.prompt_tokens, figures.completion_tokens) == (300, 63)
    assert figures.cached == CachedTokens(device=96, peer=48)
    assert figures.usage[Operation.CHAT, TokenType.OUTPUT].total == 42


@pytest.mark.parametrize(("choices", "output", "each_s"), [(1, 21, 0.1), (2, 42, 0.1)])
def test_the_time_of_an_output_token_is_that_of_its_own_choice(
    choices: int, output: int, each_s: float
) -> None:
    figures = RequestFigures()
    figures.hear(record(choices=choices, output=output))
    times = figures.output_tokens[Operation.CHAT]
    assert times.count == 1
    assert times.total == pytest.approx(each_s)
    assert figures.first_tokens[Operation.CHAT].total == 0.5


def test_one_token_has_no_time_after_the_first_and_an_unfinished_answer_none() -> None:
    figures = RequestFigures()
    figures.hear(record(output=1))
    figures.hear(record(outcome=Outcome.CANCELLED, error="Cancelled"))
    figures.hear(record(first_s=None, prompt=0, output=0))
    assert figures.output_tokens[Operation.CHAT].count == 0
    assert figures.first_tokens[Operation.CHAT].count == 2
    assert figures.usage[Operation.CHAT, TokenType.INPUT].count == 2


def test_who_is_sent_away_is_counted_with_the_error() -> None:
    figures = RequestFigures()
    figures.send_away(RateLimited("too many"))
    assert (figures.sent_away, figures.errors["rate_limited"]) == (1, 1)


def test_listeners_know_what_is_open() -> None:
    heard: list[RequestRecord] = []
    listeners = Listeners([heard.append])
    stream, whole = record(), record(door="grpc")
    stream.account.stream = True
    listeners.begin(Door.HTTP, stream.account)
    listeners.begin(Door.GRPC, whole.account)
    assert listeners.running() == {Door.HTTP: 1, Door.GRPC: 1}
    assert listeners.streams() == 1
    listeners.end(stream)
    assert listeners.running() == {Door.HTTP: 0, Door.GRPC: 1}
    assert (listeners.started, listeners.streams(), heard) == ({"http": 1, "grpc": 1}, 0, [stream])


def series(listeners: Listeners) -> set[str]:
    registry = CollectorRegistry()
    sources = Sources(
        listeners=listeners,
        connections=lambda: 0,
        is_router_up=lambda: True,
        is_ready=lambda: True,
    )
    registry.register(CodecMetrics(sources))
    return {line.rpartition(" ")[0] for line in generate_latest(registry).decode().splitlines()}


def test_a_thousand_odd_names_make_no_series() -> None:
    listeners = Listeners()
    before = series(listeners)
    for number in range(1000):
        odd = f'{number}"}}\n# TYPE x counter\u2028'
        names = {"model": odd, "tenant": odd, "key_id": odd, "path": odd, "request_id": odd}
        one = record(operation=odd if number % 2 else "messages", **names)
        listeners.begin(Door.HTTP, one.account)
        listeners.end(one)
    assert series(listeners) == before
    listeners.figures.hear(record(error="OfSomebodyElse", outcome=Outcome.FAILED))
    assert listeners.figures.errors["internal"] == 1
