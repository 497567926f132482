"""What deploy/ watches: its rules, its dashboards, and the metrics that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))

_NAME = re.compile(r"\b(?:tokenway|gen_ai|process)_[a-z0-9_]+\b")
_BRACES = re.compile(r"\{[^}]*\}|by \([^)]*\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """One curve of a panel."""

    dashboard: str
    panel: str
    expr: str


def rules() -> dict[str, dict[str, Any]]:
    """Alerts by name."""
    groups = yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def queries() -> Iterator[Query]:
    """Of all panels."""
    for path in DASHBOARDS:
        told = json.loads(path.read_text())
        for panel in told["panels"]:
            for target in panel.get("targets", ()):
                yield Query(dashboard=path.stem, panel=panel["title"], expr=target["expr"])


def metrics_in(expr: str) -> set[str]:
    """Names of metrics; those of labels, which stand in braces and after `by`, are none."""
    return set(_NAME.findall(_BRACES.sub("", expr)))
