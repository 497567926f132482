"""`tokenway trace` draws a request from the request log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.launcher.__main__ import main
from services.launcher.trace_view import Stage, stages
from services.shared.request_log.settings import RequestLogSettings
from tests.shared.request_log.rows import BEGAN_US, GENERATION, a_row, write

SLOW = replace(
    GENERATION,
    fetch_us=5_000,
    queued_us=10_000,
    admission_us=1_000,
    prefill_us=20_000,
    decode_us=900_000,
)
ROW = a_row(duration_us=1_000_000, encoded_us=2_000, first_us=40_000, generations=(SLOW,))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "requests.db"
    again = a_row(began_us=BEGAN_US + 1, outcome="failed", error="Unavailable", generations=())
    other = a_row(tenant="globex", request_id="r2")
    write(RequestLogSettings(url=f"sqlite:///{path}"), ROW, again, other)
    return str(path)


def test_stages_follow_one_another_and_what_nobody_told_is_the_way() -> None:
    assert [(one.whose, one.name, one.start_us, one.end_us) for one in stages(ROW)] == [
        ("codec", "read, encode", 0, 2_000),
        ("router", "place", 2_000, 6_000),
        ("engine", "fetch", 6_000, 11_000),
        ("engine", "queue", 11_000, 20_000),
        ("engine", "prefill", 20_000, 40_000),
        ("engine", "decode", 40_000, 940_000),
        ("codec", "answer", 40_000, 1_000_000),
    ]


def test_a_request_that_was_refused_has_no_stage_of_an_engine() -> None:
    refused = a_row(encoded_us=None, first_us=None, generations=())
    assert stages(refused) == []


TIMES = st.integers(0, 10**9)


@given(times=st.lists(TIMES, min_size=8, max_size=8))
def test_no_stage_ends_before_it_begins(times: list[int]) -> None:
    fetch, queued, admission, prefill, decode, *rest = times
    one = replace(
        GENERATION,
        fetch_us=fetch,
        queued_us=queued + admission,
        admission_us=admission,
        prefill_us=prefill,
        decode_us=decode,
    )
    whole, encoded, first = rest
    row = a_row(duration_us=whole, encoded_us=encoded, first_us=first, generations=(one,))
    assert all(0 <= stage.start_us < stage.end_us for stage in stages(row))
    assert (
        sum(_length(stage) for stage in stages(row) if stage.whose == "engine")
        == fetch + queued + prefill + decode
    )


def _length(stage: Stage) -> int:
    return stage.end_us - stage.start_us


def test_all_requests_of_a_name_are_drawn_the_newest_first(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "r1", "--file", file]) == 0
    told = capsys.readouterr().out
    assert told.count("request r1, trace ") == 2
    assert told.index("failed, Unavailable") < told.index("finished")
    assert "prompt 100 tokens (16 device, 8 host, 4 peer, 2 service cached; then evicted)" in told
    (decode,) = [line for line in told.splitlines() if "decode" in line]
    assert decode.split()[:4] == ["engine", "decode", "40.0", "900.0"]
    assert decode.count("█") == 54


def test_programs_get_every_figure(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "r1", "--file", file, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told[1]["generations"][0]["decode_us"] == 900_000


@pytest.mark.parametrize("arguments", [["r2", "--tenant", "acme"], ["none\x1b[2J"]])
def test_what_is_not_there_or_anothers_is_not_found(
    file: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *arguments, "--file", file]) == 1
    told = capsys.readouterr().err
    assert told.startswith("tokenway trace: no request ")
    assert told[:-1].isprintable()
