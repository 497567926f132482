"""Families of metrics as a scraper reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.shared.exposition import exposition
from services.shared.histogram import Histogram
from services.shared.metric_families import Family, counters, gauge, gauges, histogram, histograms


@dataclass(frozen=True)
class Told:
    """What a collector tells."""

    families: Iterable[Family]

    def collect(self) -> Iterable[Family]:
        return self.families


def samples(*families: Family) -> list[tuple[str, dict[str, str], float]]:
    """As Prometheus' own parser reads them."""
    text = exposition([Told(families)]).decode()
    read = text_string_to_metric_families(text)
    return [(s.name, s.labels, s.value) for family in read for s in family.samples]


def test_a_family_has_its_words_and_its_kind_above_its_figures() -> None:
    told = [Told([counters("seen", "What was seen.", ["kind"], {"owl": 3})]), Told([])]
    assert exposition(told) == (
        b'# HELP seen_total What was seen.\n# TYPE seen_total counter\nseen_total{kind="owl"} 3\n'
    )


def test_a_value_at_a_bound_belongs_below_it() -> None:
    figures = Histogram((1, 2.5))
    for value in (0.5, 1, 1.5, 2.5, 3):
        figures.note(value)
    assert samples(histogram("h", "words", figures)) == [
        ("h_bucket", {"le": "1"}, 2),
        ("h_bucket", {"le": "2.5"}, 4),
        ("h_bucket", {"le": "+Inf"}, 5),
        ("h_count", {}, 5),
        ("h_sum", {}, 8.5),
    ]
    labelled = samples(histograms("h", "words", ["a"], [(["x"], figures)]))
    assert ("h_bucket", {"a": "x", "le": "1"}, 2) in labelled
    assert ("h_sum", {"a": "x"}, 8.5) in labelled


def test_a_value_of_a_label_may_hold_anything() -> None:
    odd = 'a"} 7\n# TYPE \\x \\n {}, b="'
    assert samples(gauges("g", "words", ["a", "b"], {(odd, "y"): 1})) == [
        ("g", {"a": odd, "b": "y"}, 1)
    ]


@pytest.mark.parametrize("value", [True, 0, 2**60, 0.1, 1e-9, 1e22, float("inf")])
def test_a_figure_is_told_as_it_is(value: float) -> None:
    assert samples(gauge("g", "words", value)) == [("g", {}, float(value))]
