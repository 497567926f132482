"""Figures as Prometheus' families. All values of labels come from whoever keeps the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from services.shared.histogram import Histogram

Values = TypeVar("Values", bound=str | tuple[str, ...])
"""The value of the one label, or those of several."""


def counter(name: str, words: str, value: float) -> Metric:
    """Args: name: without `_total`."""
    return CounterMetricFamily(name, words, value=value)


def counters(
    name: str, words: str, labels: Sequence[str], figures: Mapping[Values, float]
) -> Metric:
    """Args: name: without `_total`."""
    family = CounterMetricFamily(name, words, labels=labels)
    for values, figure in figures.items():
        family.add_metric(_several(values), figure)
    return family


def gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def gauges(name: str, words: str, labels: Sequence[str], figures: Mapping[Values, float]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=labels)
    for values, figure in figures.items():
        family.add_metric(_several(values), figure)
    return family


def histogram(name: str, words: str, figures: Histogram) -> Metric:
    return HistogramMetricFamily(name, words, buckets=_buckets(figures), sum_value=figures.total)


def histograms(
    name: str,
    words: str,
    labels: Sequence[str],
    figures: Iterable[tuple[Sequence[str], Histogram]],
) -> Metric:
    """Args: figures: each after the values of its labels."""
    family = HistogramMetricFamily(name, words, labels=labels)
    for values, each in figures:
        family.add_metric(values, _buckets(each), each.total)
    return family


def _several(values: str | tuple[str, ...]) -> Sequence[str]:
    return (values,) if isinstance(values, str) else values


def _buckets(figures: Histogram) -> list[tuple[str, float]]:
    """Values up to each bound, which is how Prometheus counts them."""
    bounds = [*map(str, figures.bounds), "+Inf"]
    return list(zip(bounds, accumulate(list(figures.counts)), strict=True))
