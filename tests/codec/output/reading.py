"""Reads an output with a family's parser and folds what comes into a short form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.codec.events import ToolArguments, ToolEnd, ToolEvent, ToolStart
from services.codec.output.calls import Callables
from services.codec.output.dialect import Dialect
from services.codec.output.family import Family
from services.codec.output.parser import OutputParser, Shown
from services.codec.tokenizer import ControlToken

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "list": {"type": "array"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["number", "null"]},
        "choice": {"enum": ["a", 1]},
    }
}
TOOLS: Mapping[str, Mapping[str, Any]] = {"f": SCHEMA, "g": {}}

Said = tuple[Any, ...]
"""("text", …), ("think", …), ("call", name, fragments, arguments, valid)."""


def dialect(family: Family, *, as_tokens: bool = False) -> Dialect:
    """With `as_tokens` each marker that is a token in such a vocabulary is one."""
    markers = sorted(filter(str.strip, family.markers()))
    tokens = [
        ControlToken(text=text.strip(), index=at, lstrip=False, rstrip=False)
        for at, text in enumerate(markers)
        if as_tokens and len(text) > 1 and "`" not in text
    ]
    return Dialect(family, tokens)


def callables(tools: Mapping[str, Mapping[str, Any]] = TOOLS, **terms: Any) -> Callables:
    return Callables(schemas=tools, new_id=lambda: "call_1", **terms)


def said(parser: OutputParser, pieces: Iterable[str]) -> list[Said]:
    found = [item for piece in pieces for item in parser.push(piece)]
    return folded([*found, *parser.finish()])


def folded(found: Sequence[Shown | ToolEvent]) -> list[Said]:
    """Neighbouring pieces of one kind are one."""
    told: list[Said] = []
    for item in found:
        match item:
            case Shown(text=text, is_reasoning=is_reasoning):
                kind = "think" if is_reasoning else "text"
                if told and told[-1][0] == kind:
                    told[-1] = (kind, told[-1][1] + text)
                else:
                    told.append((kind, text))
            case ToolStart(name=name):
                told.append(("call", name, ""))
            case ToolArguments(fragment=fragment):
                told[-1] = (*told[-1][:2], told[-1][2] + fragment)
            case ToolEnd(arguments=arguments, valid=valid):
                told[-1] = (*told[-1], arguments, valid)
    return told


def call(name: str, arguments: str) -> Said:
    """A call that came out whole."""
    return ("call", name, arguments, arguments, True)
