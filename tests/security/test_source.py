"""What no file of the services may do: read pickles, run text, trust a folder's code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.routing import Route

from services.codec.http_body import BodyLimits
from services.codec.http_routes import HttpTerms, app
from services.shared.settings import HealthSettings

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "services").rglob("*.py"))
MODULES = {
    "pickle",
    "cloudpickle",
    "dill",
    "marshal",
    "shelve",
    "joblib",
    "diskcache",
    "zmq",
    "requests",
    "multiprocessing",
}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "import_module",
    "torch.load",
    "torch.hub.load",
    "os.system",
    "os.popen",
    "yaml.unsafe_load",
    "yaml.full_load",
    "AutoModel.from_pretrained",
    "AutoTokenizer.from_pretrained",
}
OPTIONS = {"shell", "allow_pickle", "trust_remote_code"}
"""Arguments that are never anything but False."""

OWN_COMMANDS = {"services/launcher/__main__.py": {"import_module"}}
"""The command line imports the command that was asked for, out of a table."""


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of names, or what of it can be read."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def imported(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_no_bytes_become_code(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    assert not MODULES & {name.partition(".")[0] for name in imported(nodes)}
    allowed = OWN_COMMANDS.get(str(path.relative_to(ROOT)), set())
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    assert not (CALLS - allowed) & {dotted(call.func) for call in calls}
    chosen = [keyword for call in calls for keyword in call.keywords if keyword.arg in OPTIONS]
    assert {ast.unparse(keyword.value) for keyword in chosen} <= {"False"}


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 100


def test_every_http_route_is_in_the_readme() -> None:
    terms = HttpTerms(health=HealthSettings(), body=BodyLimits(max_bytes=1, timeout_s=60))
    routes = app(cast(Any, None), cast(Any, None), cast(Any, None), terms).routes
    paths = {route.path for route in routes if isinstance(route, Route)}
    assert len(paths) == len(routes)
    (row,) = [line for line in (ROOT / "README.md").read_text().splitlines() if "| HTTP |" in line]
    told = {part for part in row.split("`") if part.startswith("/")}
    assert paths == told | {"/", "/v1/models/{name:path}"}
