"""What a codec tells Prometheus of its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from services.codec.listeners import Listeners
from services.codec.request_figures import NO_ERROR
from services.shared.histogram import Histogram
from services.shared.metric_families import (
    counter,
    counters,
    gauge,
    gauges,
    histogram,
    histograms,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """Who keeps the figures.

    Args:
        listeners: know the open requests and what became of others.
        connections: of the HTTP door.
        is_router_up: what generates is there and fits.
        is_ready: the codec can serve.
        quota_store_up: 1 while the store of quotas answers; None without one.
        quota_questions: to that store, by result; empty without one.
        logged_rows: of the request log, by what became of them; empty without one.
    """

    listeners: Listeners
    connections: Callable[[], int]
    is_router_up: Callable[[], bool]
    is_ready: Callable[[], bool]
    quota_store_up: Callable[[], float | None] = lambda: None
    quota_questions: Callable[[], Mapping[str, int]] = dict
    logged_rows: Callable[[], Mapping[str, int]] = dict


class CodecMetrics(Collector):
    """Reads figures that others keep, on the event loop's thread.

    At each scrape the requests that are open and those that ended sum up to those that came.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._figures = sources.listeners.figures

    def collect(self) -> Iterable[Metric]:
        yield from self._requests()
        yield from self._answers()
        yield from self._tokens()
        yield from self._surroundings()

    def _requests(self) -> Iterator[Metric]:
        listeners, figures, name = self._sources.listeners, self._figures, "tokenway_codec_requests"
        yield counters(f"{name}_started", "Requests that came.", ["door"], listeners.started)
        yield gauges(f"{name}_running", "Open requests.", ["door"], listeners.running())
        yield counters(
            f"{name}_ended",
            "Requests that ended.",
            ["door", "operation", "outcome"],
            figures.ended,
        )
        yield counters(
            "tokenway_codec_errors",
            "Requests that ended with an error, or were sent away.",
            ["error_type"],
            figures.errors,
        )
        yield counter(
            "tokenway_codec_sent_away",
            "Requests that came again before the time that their caller was told.",
            figures.sent_away,
        )
        yield gauge(
            "tokenway_codec_streams_open",
            "Requests that are answered as a stream.",
            listeners.streams(),
        )

    def _answers(self) -> Iterator[Metric]:
        yield histograms(
            "gen_ai_server_request_duration_seconds",
            "Requests for an answer, from the first byte to the last.",
            ["gen_ai_operation_name", "error_type"],
            self._durations(),
        )
        for name, words, figures in (
            (
                "time_to_first_token",
                "From a request's first byte to the first part of its answer.",
                self._figures.first_tokens,
            ),
            (
                "time_per_output_token",
                "After the first token, of requests that finished.",
                self._figures.output_tokens,
            ),
        ):
            yield histograms(
                f"gen_ai_server_{name}_seconds",
                words,
                ["gen_ai_operation_name"],
                [([operation], times) for operation, times in figures.items()],
            )

    def _durations(self) -> Iterator[tuple[tuple[str, str], Histogram]]:
        """Those of an error from its first time on: all of them are hundreds of lines."""
        for (operation, error_type), times in self._figures.durations.items():
            if error_type == NO_ERROR or times.count:
                yield (operation, error_type), times

    def _tokens(self) -> Iterator[Metric]:
        figures = self._figures
        yield histograms(
            "gen_ai_client_token_usage",
            "Tokens of a request whose prompt was taken.",
            ["gen_ai_operation_name", "gen_ai_token_type"],
            figures.usage.items(),
        )
        yield counter(
            "tokenway_codec_prompt_tokens",
            "Tokens of prompts that were taken.",
            figures.prompt_tokens,
        )
        yield counters(
            "tokenway_codec_cached_tokens",
            "Tokens of prompts that needed no computing.",
            ["tier"],
            asdict(figures.cached),
        )
        yield counter(
            "tokenway_codec_output_tokens", "Tokens of answers.", figures.completion_tokens
        )
        yield histogram(
            "tokenway_codec_encode_seconds",
            "From a request's first byte to the token IDs of its prompt.",
            figures.encoding,
        )

    def _surroundings(self) -> Iterator[Metric]:
        sources = self._sources
        yield gauge(
            "tokenway_codec_http_connections",
            "Open connections of the HTTP door.",
            sources.connections(),
        )
        yield gauge(
            "tokenway_codec_router_up",
            "1 while what generates is there and fits.",
            sources.is_router_up(),
        )
        yield gauge("tokenway_codec_ready", "1 while the codec is ready.", sources.is_ready())
        store_up, rows = sources.quota_store_up(), sources.logged_rows()
        if store_up is not None:
            yield gauge("tokenway_quota_store_up", "1 while the store of quotas answers.", store_up)
            yield counters(
                "tokenway_quota_store_questions",
                "Questions to the store of quotas.",
                ["result"],
                sources.quota_questions(),
            )
        if rows:
            yield counters(
                "tokenway_request_log_rows", "Rows of the request log.", ["result"], rows
            )
