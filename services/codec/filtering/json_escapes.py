"""JSON text as its readers see it: escaped characters are what they stand for."""

from __future__ import annotations

import re

from services.codec.filtering.content_filter import Blocked, Cleared, OutputMatcher, Ruling

_HEX = "[0-9a-fA-F]"
_PAIR = rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE = re.compile(rf"{_PAIR}|\\u{_HEX}{{4}}|\\[^u]", re.DOTALL)
_BEGUN = re.compile(rf"\\(?:u{_HEX}{{0,3}})?")
_HALF = re.compile(rf"\\u[dD][89abAB]{_HEX}{{2}}(?:\\(?:u(?:[dD](?:[c-fC-F]{_HEX}?)?)?)?)?")
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class JsonMatcher:
    """Shows a matcher what JSON text says, and counts characters of the text itself.

    Args:
        matcher: of what it says.
    """

    def __init__(self, matcher: OutputMatcher) -> None:
        self._matcher = matcher
        self._waiting = ""
        # For each character that is not cleared where it ends in the text.
        self._ends: list[int] = []
        self._cleared = 0
        self._shown = 0
        self._end = 0

    def push(self, text: str) -> Ruling:
        return self._told(self._matcher.push(self._read(self._waiting + text)))

    def pause(self) -> Ruling:
        text, self._waiting = self._waiting, ""
        ruling = self._told(self._matcher.push(self._plain(text)))
        return ruling if isinstance(ruling, Blocked) else self._told(self._matcher.pause())

    def _read(self, text: str) -> str:
        """What the text says; notes where each character ends, and what waits."""
        parts: list[str] = []
        at, self._waiting = 0, ""
        for escape in _ESCAPE.finditer(text):
            if _HALF.fullmatch(text, escape.start()):
                break
            parts += self._plain(text[at : escape.start()]), _character(escape[0])
            at = escape.end()
            self._end += len(escape[0])
            self._ends.append(self._end)
        rest = text[at:]
        begun = _begun(rest)
        self._waiting = rest[begun:]
        return "".join((*parts, self._plain(rest[:begun])))

    def _plain(self, text: str) -> str:
        self._ends += range(self._end + 1, self._end + len(text) + 1)
        self._end += len(text)
        return text

    def _told(self, ruling: Ruling) -> Ruling:
        count = ruling.upto - self._cleared
        if count > 0:
            self._shown = self._ends[count - 1]
            del self._ends[:count]
            self._cleared = ruling.upto
        if isinstance(ruling, Blocked):
            return Blocked(self._shown, ruling.rule)
        return Cleared(self._shown)


def _character(escape: str) -> str:
    kind = escape[1]
    if kind != "u":
        return _SIMPLE.get(kind, kind)
    units = [int(unit, 16) for unit in escape.split("\\u")[1:]]
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "replace")


def _begun(text: str) -> int:
    """Where an escape begins that is not complete; the end of the text where none is."""
    half = _HALF.search(text)
    if half is not None and half.end() == len(text):
        return half.start()
    last = text.rfind("\\")
    return last if last >= 0 and _BEGUN.fullmatch(text, last) else len(text)
