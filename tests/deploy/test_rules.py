"""Rules of Prometheus: well formed, right in their own tests, and about metrics that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.watching import PROMETHEUS, ROOT, metrics_in, queries, rules

PAGE = (ROOT / "docs/metrics.md").read_text()
SUFFIXES = ("_bucket", "_sum", "_count")
RULES = rules()


def promtool(*arguments: str | Path) -> None:
    told = subprocess.run(["promtool", *arguments], check=False, capture_output=True, text=True)  # noqa: S603, S607 our own files, Debian's tool
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", PROMETHEUS / "rules.yml"),
        ("check", "config", PROMETHEUS / "prometheus.yml"),
        ("test", "rules", PROMETHEUS / "rules.test.yml"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_promtool_finds_no_fault(arguments: tuple[str | Path, ...]) -> None:
    promtool(*arguments)


def told_in_tests() -> dict[str, list[bool]]:
    """For each alert whether it is told, in each case of the rules' tests."""
    cases = yaml.safe_load((PROMETHEUS / "rules.test.yml").read_text())["tests"]
    told: dict[str, list[bool]] = {}
    for case in cases:
        for check in case["alert_rule_test"]:
            told.setdefault(check["alertname"], []).append(bool(check["exp_alerts"]))
    return told


@pytest.mark.parametrize("alert", RULES)
def test_each_alert_is_seen_told_and_not_told(alert: str) -> None:
    assert set(told_in_tests()[alert]) == {True, False}


@pytest.mark.parametrize("alert", RULES)
def test_each_alert_says_how_bad_it_is_and_what_to_do(alert: str) -> None:
    rule = RULES[alert]
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description"}


def listed() -> set[str]:
    """Metrics that services tell, as the page has them, which another test holds to be true."""
    names = set(re.findall(r"^\| `([a-z_0-9]+)", PAGE, re.MULTILINE))
    return names | {name + suffix for name in names for suffix in SUFFIXES}


@pytest.mark.parametrize(
    "expr", sorted({rule["expr"] for rule in RULES.values()} | {one.expr for one in queries()})
)
def test_what_is_watched_exists(expr: str) -> None:
    """Of the process's own metrics the next tests see whether they are there."""
    named = {name for name in metrics_in(expr) if not name.startswith("process_")}
    assert named <= listed()
    assert metrics_in(expr) or expr.startswith("up{")


def test_the_page_lists_each_alert_and_no_other() -> None:
    page = (ROOT / "docs/watching.md").read_text()
    assert set(re.findall(r"`(Tokenway\w+)`", page)) == set(RULES)
