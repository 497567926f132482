"""Figures as families of metrics. All values of labels come from whoever keeps the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from services.shared.histogram import Histogram

Values = TypeVar("Values", bound=str | tuple[str, ...])
"""The value of the one label, or those of several."""


class Kind(StrEnum):
    """What Prometheus makes of a family's figures."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """Figures of one name.

    Args:
        name: as it is scraped, but for what the parts of a histogram add.
        kind: of all the figures.
        words: what they are.
        labels: their names.
        figures: each after the values of its labels.
    """

    name: str
    kind: Kind
    words: str
    labels: Sequence[str]
    figures: Sequence[tuple[Sequence[str], float | Histogram]]


class Collector(Protocol):
    """Reads figures that others keep."""

    def collect(self) -> Iterable[Family]:
        """The figures as they are now."""


def counter(name: str, words: str, value: float) -> Family:
    """Args: name: without `_total`."""
    return Family(f"{name}_total", Kind.COUNTER, words, (), [((), value)])


def counters(
    name: str, words: str, labels: Sequence[str], figures: Mapping[Values, float]
) -> Family:
    """Args: name: without `_total`."""
    return Family(f"{name}_total", Kind.COUNTER, words, labels, _several(figures))


def gauge(name: str, words: str, value: float) -> Family:
    return Family(name, Kind.GAUGE, words, (), [((), value)])


def gauges(name: str, words: str, labels: Sequence[str], figures: Mapping[Values, float]) -> Family:
    return Family(name, Kind.GAUGE, words, labels, _several(figures))


def histogram(name: str, words: str, figures: Histogram) -> Family:
    return Family(name, Kind.HISTOGRAM, words, (), [((), figures)])


def histograms(
    name: str,
    words: str,
    labels: Sequence[str],
    figures: Iterable[tuple[Sequence[str], Histogram]],
) -> Family:
    """Args: figures: each after the values of its labels."""
    return Family(name, Kind.HISTOGRAM, words, labels, list(figures))


def _several(figures: Mapping[Values, float]) -> list[tuple[Sequence[str], float]]:
    return [
        ((values,) if isinstance(values, str) else values, figure)
        for values, figure in figures.items()
    ]
