"""Settings: a YAML file and the environment, read once into a tree of frozen dataclasses."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

from services.shared.config_tree import SettingError, instance, keys, parsed

T = TypeVar("T")

PREFIX = "TOKENWAY_"
SECTION_MARK = "__"
MAX_FILE_BYTES = 2**20


class BadConfig(Exception):
    """Settings that cannot be used; the text names the file or variable, key, limit and value."""


def load(
    cls: type[T], path: Path | None, environ: Mapping[str, str], aliases: Mapping[str, str]
) -> T:
    """Reads `path` into `cls`, a dataclass whose fields are the keys and may be dataclasses.

    The environment goes before the file: `TOKENWAY_SERVER__PORT` is `server.port`, and a name in
    `aliases` is the dotted key that stands there. A name of ours without a section, like
    `TOKENWAY_REPLICAS`, counts when `cls` has such a key and is somebody else's when not. An empty
    variable is not set.

    Raises:
        BadConfig: unknown key, wrong type, value out of bounds, required key not set, key twice.
    """
    where = str(path) if path is not None else "settings"
    names = variables(cls, environ, aliases)
    sources = {key: name for name, key in names.items()}
    filed = _values_of(read_settings_file(path)) if path is not None else {}
    text = {key: environ[name] for key, name in sources.items()}
    with _faults_in({}, where):
        values = parsed(cls, filed, from_text=False)
    with _faults_in(sources, where):
        return instance(cls, values | parsed(cls, text, from_text=True))


@contextmanager
def _faults_in(sources: Mapping[str, str], otherwise: str) -> Iterator[None]:
    try:
        yield
    except SettingError as error:
        setting = error.key.partition("[")[0]
        raise BadConfig(f"{sources.get(setting, otherwise)}: {error}") from error


def variables(cls: type, environ: Mapping[str, str], aliases: Mapping[str, str]) -> dict[str, str]:
    """The environment's names that speak to `cls`, in rising rank, each with its dotted key."""
    known = keys(cls)
    found = {name: key for name, key in aliases.items() if environ.get(name)}
    for name in sorted(name for name, text in environ.items() if text):
        key = name.removeprefix(PREFIX).replace(SECTION_MARK, ".").lower()
        if name.startswith(PREFIX) and (SECTION_MARK in name or key in known):
            found[name] = key
    return found


def _values_of(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens sections to dotted keys; an empty section says nothing."""
    values: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            values |= _values_of(value, f"{prefix}{name}.")
        elif value is not None:
            values[f"{prefix}{name}"] = value
    return values


def read_settings_file(path: Path) -> dict[str, Any]:
    """The file's tree, unchecked but for its form. Raises BadConfig."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadConfig(f"{path} must be at most {MAX_FILE_BYTES} bytes")
        tree = yaml.load(path.read_text("utf-8"), Loader=_UniqueKeys)  # noqa: S506 a SafeLoader
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise BadConfig(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if tree is not None and not isinstance(tree, dict):
        raise BadConfig(f"{path} must hold keys and values, got {type(tree).__name__}")
    return tree or {}


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, without its silence about a key that is there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} must be text", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)
