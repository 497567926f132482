"""Grammars in the Lark dialect of llguidance, written piece by piece for one vocabulary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.codec.tokenizer import ControlToken

ANY_TEXT = r"/(.|\n)*/"
"""No control token is text."""

# Between two tokens of JSON: nothing, a space, or a new line with its indent.
_WHITESPACE = r"( |\n[ \t]{0,64})"
# What does not end is an error that the engine tells; looking for its end again and again from each
# quote inside would take time in the square of its length.
_CALLERS = re.compile(r'"(?:\\.|[^"\\\n])*"?|/(?:\\.|[^/\\\n])+/?|//[^\n]*|#[^\n]*|\bstart\b')


class Lark:
    """Rules of a grammar. Names of rules end in two underscores, to differ from a caller's.

    Args:
        controls: tokens of the vocabulary that are no text; they stand by ID in the grammar.
    """

    def __init__(self, controls: Iterable[ControlToken]) -> None:
        self._ids = {control.text: control.index for control in controls}
        texts = sorted(self._ids, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, texts)) or "(?!)")
        self._rules: list[str] = []

    def source(self, start: str) -> str:
        return "\n".join([*self._rules, f"start: {start}"])

    def rule(self, name: str, body: str, attributes: str = "") -> str:
        """Adds a rule and gives its name."""
        self._rules.append(f"{name}__{attributes}: {body}")
        return f"{name}__"

    def callers(self, source: str) -> str:
        """Adds a caller's grammar and gives the name that its start has now."""
        renamed = _CALLERS.sub(lambda found: {"start": "start__"}.get(found[0], found[0]), source)
        self._rules.insert(0, renamed)
        return "start__"

    def literal(self, text: str) -> str:
        """Exactly this text, its control tokens by ID."""
        return " ".join(self._items(self._pieces(text)))

    def json_literal(self, text: str) -> str:
        """The beginning of JSON in terminals of its own, where other JSON may come instead.

        A longer terminal would keep the lexer from all that has but its beginning.
        """
        terminals = re.findall(r'"[^"]*"|.', text)
        return " ".join('" "?' if piece == " " else _quoted(piece) for piece in terminals)

    def until(self, name: str, marker: str) -> str:
        """Any text up to the marker and with it."""
        first, *rest = self._pieces(marker)
        if first in self._ids:
            return f"{ANY_TEXT} {self.literal(marker)}"
        reached = self.rule(name, ANY_TEXT, f"[suffix={_quoted(first)}]")
        return " ".join([reached, *self._items(rest)])

    def without(self, name: str, marker: str) -> str:
        """Any text that the marker is not in."""
        first = self._pieces(marker)[0]
        if first in self._ids:
            return ANY_TEXT
        escaped = re.escape(first).replace("/", r"\/").replace("\n", r"\n")
        return self.rule(name.upper(), rf"~/(.|\n)*{escaped}(.|\n)*/")

    def json(self, schema: Mapping[str, Any], *, is_strict: bool = True) -> str:
        """JSON of a schema; unless it is strict, what cannot be expressed is left out of it."""
        options = {
            "whitespace_pattern": _WHITESPACE,
            "lenient": not is_strict,
            "coerce_one_of": not is_strict,
        }
        return f"%json {json.dumps({**schema, 'x-guidance': options}, ensure_ascii=False)}"

    def _pieces(self, text: str) -> list[str]:
        """The text cut before and after each control token."""
        pieces, end = [], 0
        for found in self._control.finditer(text):
            pieces += [text[end : found.start()], found[0]]
            end = found.end()
        return [piece for piece in (*pieces, text[end:]) if piece]

    def _items(self, pieces: Sequence[str]) -> list[str]:
        return [
            f"<[{self._ids[piece]}]>" if piece in self._ids else _quoted(piece) for piece in pieces
        ]


def regex(pattern: str) -> str:
    """A terminal that matches as the pattern does."""
    return "/" + re.sub(r"(\\.)|(/)|(\n)", _delimited, pattern, flags=re.DOTALL) + "/"


def _delimited(found: re.Match[str]) -> str:
    if found[0] in {"\n", "\\\n"}:
        return r"\n"
    return r"\/" if found[0] == "/" else found[0]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
