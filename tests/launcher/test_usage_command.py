"""`tokenway usage` sums up the request log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.launcher.__main__ import main
from services.shared.request_log.settings import RequestLogSettings
from tests.shared.request_log.rows import BEGAN_US, DAY_US, a_row, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.db"
    write(
        RequestLogSettings(url=f"sqlite:///{path}"),
        a_row(),
        a_row(outcome="cancelled"),
        a_row(outcome="failed", began_us=BEGAN_US + DAY_US),
        a_row(tenant="other", model="large", completion_tokens=1_000_000),
        a_row(tenant=None, model=None, outcome="refused", prompt_tokens=0, completion_tokens=0),
    )
    return path


class Command:
    def __init__(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file = file
        self._capsys = capsys

    def __call__(self, *arguments: str) -> str:
        assert main(["usage", "--file", str(self._file), *arguments]) == 0
        return self._capsys.readouterr().out

    def json(self, *arguments: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self(*arguments, "--json"))
        return told


@pytest.fixture
def usage(file: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(file, capsys)


def test_each_tenant_has_a_line_and_the_first_used_most(usage: Command) -> None:
    told = usage.json()
    assert [entry["tenant"] for entry in told["usage"]] == ["other", "acme", None]
    assert told["usage"][1] == {
        "tenant": "acme",
        "requests": {"finished": 1, "cancelled": 1, "failed": 1, "refused": 0},
        "prompt_tokens": 300,
        "cached_tokens": 90,
        "completion_tokens": 30,
    }
    assert told["total"]["requests"]["refused"] == 1
    assert told["total"]["completion_tokens"] == 1_000_030
    lines = [line.split() for line in usage().splitlines() if line.strip()]
    assert ["acme", "1", "1", "1", "0", "300", "90", "30"] in lines


def test_days_stand_in_their_order(usage: Command) -> None:
    told = usage.json("--by", "day")
    assert [entry["day"] for entry in told["usage"]] == ["2024-10-04", "2024-10-05"]


def test_a_tenant_sees_its_own_alone(usage: Command) -> None:
    told = usage.json("--tenant", "other", "--by", "model")
    assert [entry["model"] for entry in told["usage"]] == ["large"]
    assert told["total"]["requests"]["finished"] == 1
    assert usage.json("--tenant", "nobody")["usage"] == []


def test_what_began_before_is_left_out(usage: Command) -> None:
    assert len(usage.json("--since", "2024-10-05")["usage"]) == 1
    assert len(usage.json("--since", "2024-10-04T00:00Z", "--by", "day")["usage"]) == 2
    assert usage.json("--since", "1h")["usage"] == []


def test_costs_are_told_exactly_and_what_has_no_price_is_named(
    usage: Command, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices: [{model: small, input: 0.1, cached_input: 0.01, output: 0.3}]")
    told = usage.json("--prices", str(prices))
    other, acme, nobody = told["usage"]
    assert acme["cost"] == "0.0000309"
    assert (other["cost"], other["unpriced_models"]) == ("0", ["large"])
    assert nobody["unpriced_models"] == []
    shown = usage("--prices", str(prices))
    assert "USD" in shown
    assert "without a price, and not in the sums: large" in shown


def test_names_move_no_cursor_and_are_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.db"
    settings = RequestLogSettings(url=f"sqlite:///{file}")
    for name in ("[red]a[/red]", "\x1b[31mred", "two\nlines", "\u202egnol"):
        write(settings, a_row(model=name))
    shown = Command(file, capsys)("--by", "model")
    for name in ("[red]a[/red]", r"\x1b[31mred", r"two\nlines", r"\u202egnol"):
        assert name in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--file", "missing.db"], "cannot be read: [Errno 2] No such file"),
        (["--url", "mysql://root:hunter2@db/log"], "url must be sqlite:///FILE or postgresql"),
        (["--url", "postgresql://tokenway:hunter2@127.0.0.1:1/log"], "the request log cannot be"),
        (["--prices", "missing.yaml"], "missing.yaml cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["usage", *arguments]) == 1
    told = capsys.readouterr().err
    assert told.startswith("tokenway usage: ")
    assert said in told
    assert told.count("\n") == 1
    assert "hunter2" not in told


def test_the_environment_names_the_log_as_it_does_for_a_codec(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENWAY_REQUEST_LOG__URL", f"sqlite:///{file}")
    assert main(["usage", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["usage"]) == 3


@pytest.mark.parametrize("since", ["soon", "2030-01-01T12:00", "xd", "nand", ""])
def test_a_time_that_is_none_is_refused(
    usage: Command, since: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        usage("--since", since)
    assert "must be like 12h or 7d" in capsys.readouterr().err
