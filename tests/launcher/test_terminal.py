"""What others chose is shown and does nothing to a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text
from tokenway.engine.v1 import engine_pb2
from tokenway.router.v1 import router_pb2 as pb

from services.launcher.cache_table import cache_tables
from services.launcher.keys_command import main as keys
from services.launcher.replica_table import explanation_table, replica_table
from services.launcher.terminal import show

ODD = "[red]a[/red]\x1b[2J\x1b]0;t\x07\r\u202eb\x9b1m"
SEEN = r"[red]a[/red]\x1b[2J\x1b]0;t\u202eb\x9b1m"
"""Rich leaves out bells and returns by itself."""

WIDTH = 400


def test_a_table_shows_marks_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name", "number")
    table.add_row(ODD, "1")
    table.add_row(Text(ODD, style="bold"), "2")
    show(table, WIDTH)
    told = capsys.readouterr().out
    assert told.count(SEEN) == 2
    assert all(line.isprintable() for line in told.split("\n"))


def test_a_line_end_in_a_cell_makes_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name", "number")
    table.add_row("a\nb", "1")
    show(table, WIDTH)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["│", "b", "│", "│"] in rows


def test_what_replicas_say_of_themselves_is_shown_harmlessly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replica = pb.Replica(address=ODD, version="v", reason=ODD, pool=ODD)
    option = pb.Option(address=ODD, reason=ODD, peer=ODD)
    told = pb.ExplainResponse(address=ODD, reason=ODD, policy=ODD, options=[option])
    stats = engine_pb2.GetCacheStatsResponse(type=ODD)
    for shown in (
        replica_table([replica]),
        explanation_table(told),
        cache_tables(stats, {ODD: stats, "b": ODD}),
    ):
        show(shown, WIDTH)
    seen = capsys.readouterr().out
    assert seen.count(r"\x1b[2J") >= 9
    assert all(line.isprintable() for line in seen.split("\n"))


def test_a_file_of_keys_with_odd_names_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "keys.json"
    entry = {
        "id": "tw_a",
        "digest": "00" * 32,
        "tenant": "acme",
        "name": ODD,
        "created": "2030-01-01T00:00:00+00:00",
    }
    file.write_text(json.dumps({"version": 1, "keys": [entry]}))
    file.chmod(0o600)
    assert keys(["list", "--file", str(file)]) == 1
    told = capsys.readouterr().err
    assert told.endswith("\n")
    assert told[:-1].isprintable()
    assert "name must be at most" in told
