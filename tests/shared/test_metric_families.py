"""Figures as families of metrics."""

from __future__ import annotations

from services.shared.metric_families import Kind, counter, counters


def test_one_label_or_several_name_a_figure() -> None:
    assert counters("c", "words", ["a"], {"x": 1}).figures == [(("x",), 1)]
    assert counters("c", "words", ["a", "b"], {("x", "y"): 2}).figures == [(("x", "y"), 2)]


def test_a_counter_is_scraped_as_a_total() -> None:
    for family in (counter("c", "words", 1), counters("c", "words", ["a"], {"x": 1})):
        assert (family.name, family.kind) == ("c_total", Kind.COUNTER)
