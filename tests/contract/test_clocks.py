"""No duration is taken from the wall clock, which jumps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICES = Path(__file__).parents[2] / "services"
OUTLIVE_PROCESSES = {
    "engine/kv/stores/lmdb_store.py",
    "shared/access/guard.py",
    "shared/audit/event.py",
    "shared/request_log/request_log.py",
    "shared/tls/own_certificate.py",
}
"""Where points in time are kept, on which a clock of one process has nothing to say."""

FILES = [
    path
    for service in ("router", "engine", "shared")
    for path in sorted((SERVICES / service).rglob("*.py"))
    if str(path.relative_to(SERVICES)) not in OUTLIVE_PROCESSES
]
WALL_CLOCKS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}
BY_NAME = {("time", "time"), ("time", "time_ns")}


def readings(tree: ast.AST) -> Iterator[str]:
    """Where a tree reads a wall clock."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in WALL_CLOCKS:
                yield f"line {node.lineno}: {name}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module, alias.name) in BY_NAME:
                    yield f"line {node.lineno}: from {node.module} import {alias.name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SERVICES)))
def test_no_service_behind_the_codec_reads_a_wall_clock(path: Path) -> None:
    assert not list(readings(ast.parse(path.read_text("utf-8"))))


@pytest.mark.parametrize(
    "text",
    ["import time\ntime.time()", "from time import time_ns", "datetime.now()", "f(time.time_ns)"],
)
def test_a_reading_is_found(text: str) -> None:
    assert list(readings(ast.parse(text)))
