"""Calls whose arguments stand in braces like JSON, but with other quotes and bare keys."""

from __future__ import annotations

import json

from services.codec.output.calls import Calls
from services.codec.output.json_prefix import MAX_DEPTH, JsonPrefix
from services.codec.output.markers import Markers
from services.codec.output.scanner import Scanner, Steps

_MAX_WORD = 1024
_KEY_ENDS = Markers((":",))


class Fields:
    """Turns such arguments into JSON as they come.

    Args:
        string_mark: stands around strings.
    """

    def __init__(self, scan: Scanner, calls: Calls, string_mark: str) -> None:
        self._scan = scan
        self._calls = calls
        self._mark = string_mark
        self._marks = Markers((string_mark,))

    def read(self) -> Steps[bool]:
        """Reads the arguments of a call that was begun; False where they break off or are none."""
        return (yield from self._value(0))

    def _value(self, depth: int) -> Steps[bool]:
        first = yield from self._scan.blanks()
        if first in {"{", "["} and depth < MAX_DEPTH:
            return (yield from self._items(depth))
        if (yield from self._scan.reads(self._mark)):
            return (yield from self._string())
        return (yield from self._word())

    def _items(self, depth: int) -> Steps[bool]:
        """What stands in braces or brackets."""
        scan, calls = self._scan, self._calls
        opening = yield from scan.take()
        closing = "}" if opening == "{" else "]"
        calls.push(opening)
        following = yield from scan.blanks()
        while following != closing:
            if opening == "{" and not (yield from self._key()):
                return False
            if not (yield from self._value(depth + 1)):
                return False
            following = yield from scan.blanks()
            if following == ",":
                scan.skip(1)
                calls.push(", ")
                yield from scan.blanks()
            elif following != closing:
                return False
        scan.skip(1)
        calls.push(closing)
        return True

    def _key(self) -> Steps[bool]:
        calls = self._calls
        if (yield from self._scan.reads(self._mark)):
            if not (yield from self._string()):
                return False
            found = (yield from self._scan.blanks()) == ":"
            self._scan.skip(found)
            calls.push(": ")
            return found
        key, end = yield from self._scan.until(_KEY_ENDS, _MAX_WORD)
        if end is None or not key.strip():
            return False
        calls.push(json.dumps(calls.spelled(key.strip()), ensure_ascii=False) + ": ")
        return True

    def _string(self) -> Steps[bool]:
        calls = self._calls
        calls.push('"')
        end = None
        while end is None:
            text, end = yield from self._scan.run(self._marks)
            calls.push(json.dumps(calls.spelled(text), ensure_ascii=False)[1:-1])
            if end is None and self._scan.is_over:
                return False
        calls.push('"')
        return True

    def _word(self) -> Steps[bool]:
        """A number, a literal, or text without quotes."""
        word, calls = "", self._calls
        while (char := (yield from self._scan.peek())) not in {",", "}", "]"}:
            if not char or len(word) > _MAX_WORD:
                return False
            word += char
            self._scan.skip(1)
        word = calls.spelled(word.strip())
        check = JsonPrefix(only_object=False)
        is_json = check.push(word + ",") == len(word) and check.is_complete
        calls.push(word if word and is_json else json.dumps(word, ensure_ascii=False))
        return True
