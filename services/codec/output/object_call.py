"""Calls that are JSON objects of name and arguments, alone or in lists."""

from __future__ import annotations

import json
from typing import Protocol

from services.codec.output.calls import Calls
from services.codec.output.json_prefix import JsonPrefix
from services.codec.output.scanner import Scanner, Steps

_ARGUMENTS = frozenset({"arguments", "parameters"})
_KNOWN = _ARGUMENTS | {"name", "id", "type"}


class Taking(Protocol):
    """What takes text as long as it is JSON."""

    @property
    def is_complete(self) -> bool: ...

    def push(self, text: str) -> int: ...


class Arguments(Taking, Protocol):
    """What takes arguments, also those that are no JSON."""

    def spoil(self, text: str) -> None: ...


class _Kept:
    """Arguments that came before the name: the call cannot be told yet."""

    def __init__(self) -> None:
        self._json = JsonPrefix()
        self.text = ""

    @property
    def is_complete(self) -> bool:
        return self._json.is_complete

    def push(self, text: str) -> int:
        taken = self._json.push(text)
        self.text += text[:taken]
        return taken

    def spoil(self, text: str) -> None:
        """Without a call there is nothing to spoil."""


def object_calls(scan: Scanner, calls: Calls, *, only_known: bool = False) -> Steps[bool]:
    """Reads an object, or a list of them. False where one is no call, and nothing told of it.

    With `only_known` an object that has other keys than those of calls is none.
    """
    if (yield from scan.blanks()) != "[":
        return (yield from _object_call(scan, calls, only_known=only_known))
    scan.skip(1)
    while (following := (yield from scan.blanks(","))) == "{":
        if not (yield from _object_call(scan, calls, only_known=only_known)):
            return False
        if calls.is_open or calls.is_enough:
            return True
        scan.hold(scan.position)
    scan.skip(len(following))
    return following == "]"


def _object_call(scan: Scanner, calls: Calls, *, only_known: bool) -> Steps[bool]:
    """Reads one object. A call that was begun is always ended."""
    is_whole = yield from _members(scan, calls, only_known=only_known)
    if not calls.is_open:
        return False
    if is_whole:
        calls.end()
    elif scan.is_over:
        calls.end(is_cut=not calls.is_complete)
    # Else the caller finds out where the broken call ends.
    return True


def _members(scan: Scanner, calls: Calls, *, only_known: bool) -> Steps[bool]:
    """False where the object breaks off or is no call."""
    early = _Kept()
    following = yield from scan.take()
    while following in {"{", ","}:
        key = yield from _key(scan)
        if key is None or (only_known and key not in _KNOWN):
            return False
        if not (yield from _member(scan, calls, key, early)):
            return False
        following = yield from scan.blanks()
        scan.skip(len(following) if following in ",}" else 0)
    return following == "}"


def _member(scan: Scanner, calls: Calls, key: str, early: _Kept) -> Steps[bool]:
    if key in _ARGUMENTS:
        return (yield from _arguments(scan, calls if calls.is_open else early))
    if key != "name":
        return (yield from json_value(scan, JsonPrefix(only_object=False)))
    name = yield from _string(scan)
    if name is None or not calls.begin(name):
        return False
    # What comes now belongs to a call that is told already: nothing can be given back.
    scan.let_go()
    calls.push(early.text)
    return True


def _key(scan: Scanner) -> Steps[str | None]:
    key = yield from _string(scan)
    if key is None or (yield from scan.blanks()) != ":":
        return None
    scan.skip(1)
    return key


def _arguments(scan: Scanner, taking: Arguments) -> Steps[bool]:
    """The value of the arguments: an object, JSON text in a string, or null for none."""
    first = yield from scan.blanks()
    if first == '"':
        return (yield from _arguments_in_string(scan, taking))
    if first == "n":
        return (yield from scan.reads("null"))
    return (yield from json_value(scan, taking))


def _arguments_in_string(scan: Scanner, taking: Arguments) -> Steps[bool]:
    kept = _Text()
    is_whole = yield from json_value(scan, kept)
    text = json.loads(kept.text) if is_whole else kept.text
    taken = taking.push(text)
    if is_whole and taken == len(text) and (taking.is_complete or not text):
        return True
    taking.spoil(text[taken:])
    return False


def json_value(scan: Scanner, taking: Taking) -> Steps[bool]:
    """Hands over JSON up to its end; False where it breaks off or is none."""
    while not taking.is_complete:
        if not (yield from scan.peek()):
            return False
        rest = scan.rest
        taken = taking.push(rest)
        scan.skip(taken)
        if taken < len(rest):
            return taking.is_complete
    return True


def _string(scan: Scanner) -> Steps[str | None]:
    """Reads a JSON string; None where there is none."""
    if (yield from scan.blanks()) != '"':
        return None
    kept = _Text()
    if not (yield from json_value(scan, kept)):
        return None
    value = json.loads(kept.text)
    return value if isinstance(value, str) else None


class _Text(_Kept):
    """A JSON value of any kind."""

    def __init__(self) -> None:
        super().__init__()
        self._json = JsonPrefix(only_object=False)
