"""What completes the beginning of a JSON text, for clients that read it with a strict parser."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_WHOLE_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPEN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(u[0-9a-fA-F]{0,3})?\Z")
_WORDS = ("true", "false", "null")
_CLOSERS = {"{": "}", "[": "]"}
_NEEDED = {"first": "", "key": '"":null', "colon": ":null", "value": "null", "end": ""}


def closing(beginning: str) -> str:
    """The shortest completion of what begins as valid JSON; nothing is taken back."""
    opened: list[str] = []
    place, last = "value", ""
    for part in _TOKEN.findall(beginning):
        last = part
        if part in _CLOSERS:
            opened.append(part)
        elif part in "}]" and opened:
            opened.pop()
        place = _place_after(part, place, opened)
    rest = "" if beginning[-1:].isspace() and not _is_open(last) else _scalar_rest(last)
    return rest + _NEEDED[place] + "".join(_CLOSERS[bracket] for bracket in reversed(opened))


def _place_after(part: str, place: str, opened: list[str]) -> str:
    in_object = opened[-1:] == ["{"]
    if part in _CLOSERS:
        return "first"
    if part in ",:":
        return "key" if part == "," and in_object else "value"
    return "colon" if in_object and part not in "}]" and place in {"first", "key"} else "end"


def _is_open(part: str) -> bool:
    return part.startswith('"') and not _WHOLE_STRING.fullmatch(part)


def _scalar_rest(part: str) -> str:
    if _is_open(part):
        return f'{_escape_rest(part)}"'
    if part.endswith(("-", "+", ".", "e", "E")) and part[0] in "-0123456789":
        return "0"
    return next((word[len(part) :] for word in _WORDS if part and word.startswith(part)), "")


def _escape_rest(string: str) -> str:
    escape = _OPEN_ESCAPE.search(string)
    if escape is None:
        return ""
    digits = escape[1]
    return "\\" if digits is None else "0" * (5 - len(digits))
