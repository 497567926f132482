"""The file of the filter `patterns`: words, phrases and patterns, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 32 * 2**20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,63}")
_YAML = frozenset({".yaml", ".yml"})
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BadRules(ValueError):
    """A file that cannot be used; the text names file, entry, limit and value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Entries under one name.

    Args:
        name: tells in logs why something was blocked.
        words: words and phrases.
        patterns: see `pattern_syntax`.
        whole_words: entries begin and end with a word.
    """

    name: str
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    whole_words: bool = True


def read_rules(path: Path) -> tuple[Rule, ...]:
    """YAML, or else a word or phrase a line, each a rule of its own; `#` begins a comment.

    Raises:
        BadRules: the file cannot be read, or is not of that form.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadRules(f"{path} must have at most {MAX_BYTES} bytes")
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRules(f"{path} cannot be read: {error}") from error
    try:
        rules = tuple(_of_yaml(text) if path.suffix in _YAML else _of_lines(text))
    except BadRules as error:
        raise BadRules(f"{path}: {error}") from error
    if not rules:
        raise BadRules(f"{path} has no rule")
    return rules


def _of_lines(text: str) -> Iterator[Rule]:
    for number, line in enumerate(text.split("\n"), 1):
        phrase = line.strip()
        if phrase and not phrase.startswith("#"):
            yield Rule(name=f"line {number}", words=(phrase,))


def _of_yaml(text: str) -> Iterator[Rule]:
    try:
        tree = yaml.load(text, _Loader)  # noqa: S506 both are safe loaders
    except yaml.YAMLError as error:
        raise BadRules(f"is no YAML: {error}") from error
    if (
        not isinstance(tree, Mapping)
        or set(tree) != {"rules"}
        or not isinstance(tree["rules"], list)
    ):
        raise BadRules("must have a list `rules` and nothing else")
    names: set[str] = set()
    for at, entry in enumerate(tree["rules"]):
        rule = _rule(entry, f"rules[{at}]")
        if rule.name in names:
            raise BadRules(f"rules[{at}].name must be of this rule alone, got {rule.name!r}")
        names.add(rule.name)
        yield rule


def _rule(entry: Any, place: str) -> Rule:
    if not isinstance(entry, Mapping):
        raise BadRules(f"{place} must be a mapping")
    unknown = set(entry) - {"name", "words", "patterns", "whole_words"}
    if unknown:
        raise BadRules(f"{place} must have name, words, patterns, whole_words, got {min(unknown)}")
    name, whole_words = entry.get("name"), entry.get("whole_words", True)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadRules(f"{place}.name must have 1 to 64 letters, digits and . _ : / -")
    if not isinstance(whole_words, bool):
        raise BadRules(f"{place}.whole_words must be true or false")
    words = _texts(entry.get("words", []), f"{place}.words")
    patterns = _texts(entry.get("patterns", []), f"{place}.patterns")
    if not words and not patterns:
        raise BadRules(f"{place} must have words or patterns")
    return Rule(name=name, words=words, patterns=patterns, whole_words=whole_words)


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadRules(f"{place} must be a list")
    for at, item in enumerate(value):
        if not isinstance(item, str):
            raise BadRules(f"{place}[{at}] must be a string: write quotes around it")
    return tuple(value)
