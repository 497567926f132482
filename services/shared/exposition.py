"""Families of metrics in Prometheus' text format, version 0.0.4.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from services.shared.histogram import Histogram
from services.shared.metric_families import Collector, Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(collectors: Iterable[Collector]) -> bytes:
    """What they tell now."""
    families = (family for collector in collectors for family in collector.collect())
    return "".join(line for family in families for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    name = family.name
    yield f"# HELP {name} {family.words}\n# TYPE {name} {family.kind}\n"
    for values, figure in family.figures:
        pairs = zip(family.labels, values, strict=True)
        labels = ",".join([f'{label}="{value.translate(_ESCAPED)}"' for label, value in pairs])
        if isinstance(figure, Histogram):
            yield from _distribution(name, labels, figure)
        else:
            yield f"{name}{_braced(labels)} {+figure}\n"  # with a sign, for True is no number


def _distribution(name: str, labels: str, figures: Histogram) -> Iterator[str]:
    """Values up to each bound, which is how Prometheus counts them."""
    below = list(accumulate(list(figures.counts)))
    begin = f"{name}_bucket{{{labels}{',' if labels else ''}le="
    for bound, count in zip((*figures.bounds, "+Inf"), below, strict=True):
        yield f'{begin}"{bound}"}} {count}\n'
    braced = _braced(labels)
    yield f"{name}_count{braced} {below[-1]}\n{name}_sum{braced} {figures.total}\n"


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""
