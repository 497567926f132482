"""What decides in the router looks at no clock, draws no number and orders nothing by chance."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = "The router decides without wire or telemetry, and carries no tensors"
FORBIDDEN_IMPORTS = {"time", "random", "secrets", "uuid", "datetime", "threading"}
FORBIDDEN_CALLS = {"asyncio.sleep", "asyncio.get_event_loop", "asyncio.get_running_loop", "id"}


def domain_modules() -> list[str]:
    """Files of the modules and packages that the contract names."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    contract = next(one for one in contracts if one["name"] == CONTRACT)
    paths = [ROOT / name.replace(".", "/") for name in contract["source_modules"]]
    files = [file for path in paths for file in _files(path)]
    return [str(file.relative_to(ROOT)) for file in files]


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def source(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def is_set(node: ast.expr) -> bool:
    """Whether an expression is, by its form, a set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"set", "frozenset"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd, ast.Sub)):
        return is_set(node.left) or is_set(node.right)
    return isinstance(node, (ast.Set, ast.SetComp))


def names_of_sets(tree: ast.Module) -> set[str]:
    """Variables, attributes and arguments that hold sets, by assignment or annotation."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and is_set(node.value):
            names |= {_last(target) for target in node.targets}
        elif isinstance(node, ast.AnnAssign) and _says_set(node.annotation):
            names.add(_last(node.target))
        elif isinstance(node, ast.arg) and node.annotation and _says_set(node.annotation):
            names.add(node.arg)
    return names


def _last(node: ast.expr) -> str:
    """The name of an attribute, whatever it is an attribute of."""
    return ast.unparse(node).rpartition(".")[2]


def _says_set(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).split("[")[0] in {"set", "frozenset", "Set", "AbstractSet"}


def iterated(tree: ast.Module) -> list[ast.expr]:
    """What is gone through in an order: in loops, and in lists and dictionaries made of it."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            found.append(node.iter)
        elif isinstance(node, (ast.ListComp, ast.DictComp, ast.GeneratorExp)):
            found += [generator.iter for generator in node.generators]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"list", "tuple", "iter"}:
            found += node.args
    return found


@pytest.mark.parametrize("file", domain_modules())
def test_a_domain_module_takes_time_and_chance_from_outside(file: str) -> None:
    tree = source(file)
    assert not imported(tree) & FORBIDDEN_IMPORTS
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not calls & FORBIDDEN_CALLS


@pytest.mark.parametrize("file", domain_modules())
def test_a_domain_module_goes_through_no_set(file: str) -> None:
    tree = source(file)
    sets = names_of_sets(tree)
    disordered = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in iterated(tree)
        if is_set(node) or _last(node) in sets
    ]
    assert not disordered


def test_what_goes_through_a_set_is_found() -> None:
    tree = ast.parse("names: set[str] = set()\nfor name in names: print(name)\nlist({1} | other)")
    assert len([one for one in iterated(tree) if is_set(one)]) == 1
    assert names_of_sets(tree) == {"names"}
