"""Requests are found by their names and summed by tenant, key, model and day."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from services.shared.request_log.drop import FAULTS, Drop, cause_of
from services.shared.request_log.reader import MOST_FOUND, Grouping
from services.shared.request_log.settings import RequestLogSettings
from tests.shared.request_log.rows import BEGAN_US, DAY_US, GENERATION, a_row, reading, write


def test_all_requests_of_a_name_are_found_the_newest_first(settings: RequestLogSettings) -> None:
    rows = [a_row(began_us=BEGAN_US + at, generations=()) for at in range(3)]
    write(settings, *rows, a_row(request_id="r2"))
    with reading(settings) as reader:
        assert reader.find("r1") == rows[::-1]
        assert reader.find("r3") == []
        assert reader.find("r1' OR '1'='1") == []


def test_as_many_are_found_as_can_be_looked_at(settings: RequestLogSettings) -> None:
    write(settings, *(a_row() for _ in range(MOST_FOUND + 5)))
    with reading(settings) as reader:
        assert len(reader.find("r1")) == MOST_FOUND


def test_generations_stand_with_their_request(settings: RequestLogSettings) -> None:
    several = tuple(replace(GENERATION, choice=choice, fetch_us=choice) for choice in range(3))
    rows = [a_row(generations=several), a_row(began_us=1, generations=())]
    write(settings, *rows)
    with reading(settings) as reader:
        assert reader.find("r1") == rows


def test_rows_of_one_tenant_are_not_shown_for_another(settings: RequestLogSettings) -> None:
    write(settings, a_row(tenant="acme"), a_row(tenant="other"), a_row(tenant=None))
    for tenant, count in (("acme", 1), ("other", 1), ("acme' --", 0), (None, 3)):
        with reading(settings, tenant) as reader:
            assert len(reader.find("r1")) == count
            assert sum(one.requests for one in reader.usage(Grouping.MODEL)) == count


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        (Grouping.TENANT, {"acme": 3, "other": 1, None: 1}),
        (Grouping.KEY, {"tw_1": 4, None: 1}),
        (Grouping.MODEL, {"small": 4, "large": 1}),
        (Grouping.DAY, {"20000": 3, "20001": 2}),
    ],
)
def test_sums_are_told_by_what_is_asked_for(
    settings: RequestLogSettings, by: Grouping, groups: dict[str | None, int]
) -> None:
    write(
        settings,
        a_row(key_id="tw_1"),
        a_row(key_id="tw_1", outcome="failed", error="Unavailable"),
        a_row(key_id="tw_1", began_us=BEGAN_US + DAY_US - 1, model="large"),
        a_row(key_id="tw_1", began_us=BEGAN_US + DAY_US, tenant="other"),
        a_row(key_id=None, began_us=BEGAN_US + DAY_US, tenant=None),
    )
    with reading(settings) as reader:
        sums = reader.usage(by)
        assert len(reader.usage(by, since_us=BEGAN_US + 2 * DAY_US)) == 0
    found: Counter[str | None] = Counter()
    for one in sums:
        found[one.group] += one.requests
        assert one.prompt_tokens == 100 * one.requests
        assert one.cached_tokens == 30 * one.requests
        assert one.completion_tokens == 10 * one.requests
    assert found == groups


def test_a_log_that_is_not_there_is_not_made(settings: RequestLogSettings, file: Path) -> None:
    with pytest.raises(FileNotFoundError), reading(settings):
        pass
    assert not file.exists()
    file.parent.mkdir()
    file.write_bytes(b"")
    with pytest.raises(FAULTS) as caught, reading(settings):
        pass
    assert cause_of(caught.value) is Drop.SCHEMA


def test_control_characters_reach_no_row(settings: RequestLogSettings) -> None:
    bad = "a\r\n\x1b[31m\x00\u202e\u2028\ud800ü"
    write(settings, a_row(model=bad, path=bad * 100, error=bad, routed=bad, key_id=bad))
    with reading(settings) as reader:
        (row,) = reader.find("r1")
    for text in (row.model, row.path, row.error, row.routed, row.key_id):
        assert text is not None
        assert text.isprintable()
        assert text.startswith(r"a\r\n\x1b[31m\x00\u202e\u2028\ud800ü")
    assert len(row.path) == 100
