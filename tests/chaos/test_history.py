"""A history with anything wrong in it is found out, and a good one is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.history import History, broken, figures
from tests.chaos.verdict import Verdict, judged
from tests.faults.answer import streamed, whole
from tests.faults.test_answer import DONE, END, ROLE, said

ERROR = 'data: {"error":{"message":"no replica"}}\n\n'
RIGHT = streamed(200, "".join([ROLE, *said(["one", " two"]), END, DONE]))


@pytest.mark.parametrize(
    ("frames", "verdict"),
    [
        ([ROLE, *said(["o", "ne", " two"]), END, DONE], Verdict.EXACT),
        ([ROLE, *said(["one", " two", " two"]), END, DONE], Verdict.WRONG),
        ([ROLE, *said(["one"]), END, DONE], Verdict.WRONG),
        ([ROLE, *said(["one"]), ERROR], Verdict.FAILED),
        ([ERROR], Verdict.FAILED),
        ([ROLE, *said(["one", " one"]), ERROR], Verdict.WRONG),
        ([ROLE, *said(["two"]), ERROR], Verdict.WRONG),
        ([ROLE, *said(["one"])], Verdict.UNEXPLAINED),
        ([ROLE, *said(["one"]), 'data: {"error":{"message":""}}\n\n'], Verdict.UNEXPLAINED),
        ([], Verdict.UNEXPLAINED),
    ],
)
def test_a_stream_is_judged_by_the_undisturbed_one(frames: list[str], verdict: Verdict) -> None:
    assert judged(streamed(200, "".join(frames)), RIGHT)[0] is verdict


def test_a_refusal_is_judged_by_its_reason() -> None:
    refusal = whole(503, '{"error":{"message":"no replica is ready"}}')
    assert judged(refusal, RIGHT) == (Verdict.FAILED, "no replica is ready")
    assert judged(whole(500, "{}"), RIGHT)[0] is Verdict.UNEXPLAINED


def test_what_is_wrong_is_shown_where_it_begins() -> None:
    other = streamed(200, "".join([ROLE, *said(["one", " ten"]), END, DONE]))
    assert "one ten" in judged(other, RIGHT)[1]
    assert "one two" in judged(other, RIGHT)[1]


def asked(name: str) -> dict[str, Any]:
    return {"what": "asked", "request": name, "asked": "1 messages plain"}


def told(name: str, verdict: Verdict = Verdict.EXACT, why: str = "") -> dict[str, Any]:
    return {"what": "told", "request": name, "door": "http", "verdict": verdict, "why": why}


GOOD = [
    asked("r0"),
    {"what": "fault", "fault": "kill", "engine": 1, "lasts_s": 0.5},
    asked("r1"),
    told("r1"),
    told("r0", Verdict.FAILED, "no replica"),
    {"what": "continued", "answers": 1},
]


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([*GOOD, asked("r2")], "r2 has no end"),
        ([*GOOD, told("r1")], "r1 was told 2 times"),
        ([*GOOD, asked("r1")], "r1 was asked 2 times"),
        ([*GOOD, asked("r2"), told("r2", Verdict.WRONG, "a, b")], "r2 is wrong: a, b"),
        (
            [*GOOD, asked("r2"), told("r2", Verdict.UNEXPLAINED, "cut")],
            "r2 is broken without a reason: cut",
        ),
        ([*GOOD, {"what": "left", "left": "2 wait"}], "2 wait"),
    ],
)
def test_each_broken_rule_is_named(entries: list[dict[str, Any]], fault: str) -> None:
    assert broken(GOOD) == []
    assert broken(entries) == [fault]


def test_a_table_tells_faults_outcomes_and_reasons() -> None:
    assert [line.split() for line in figures(GOOD)] == [
        ["faults", "kill", "1"],
        ["requests", "exact", "1"],
        ["requests", "failed", "with", "a", "reason", "1"],
        ["by", "door", "http,", "exact", "1"],
        ["by", "door", "http,", "failed", "with", "a", "reason", "1"],
        ["reasons", "no", "replica", "1"],
        ["continued", "answers", "1"],
    ]


def test_a_history_is_kept_as_it_grows(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    history.note("fault", fault="kill", engine=2)
    history.close()
    (line,) = (tmp_path / "history").read_text().splitlines()
    assert line.endswith('"what": "fault", "fault": "kill", "engine": 2}')
