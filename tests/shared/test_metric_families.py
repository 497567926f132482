"""Figures as families of metrics."""

from __future__ import annotations

from services.shared.histogram import Histogram
from services.shared.metric_families import counters, histogram


def test_a_value_at_a_bound_belongs_below_it() -> None:
    figures = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 2, 3):
        figures.note(value)
    family = histogram("h", "words", figures)
    assert [s.value for s in family.samples if s.name == "h_bucket"] == [2, 4, 5]
    assert [s.value for s in family.samples if s.name == "h_sum"] == [8]
    assert figures.count == 5


def test_one_label_or_several_name_a_figure() -> None:
    (one,) = counters("c", "words", ["a"], {"x": 1}).samples
    (two,) = counters("c", "words", ["a", "b"], {("x", "y"): 2}).samples
    assert (one.labels, one.value) == ({"a": "x"}, 1)
    assert (two.labels, two.value) == ({"a": "x", "b": "y"}, 2)
