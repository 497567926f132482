"""How far a text is the beginning of JSON, judged as it arrives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

MAX_DEPTH = 128
_BLANK = " \t\n\r"
_DIGITS = "0123456789"
_HEX = frozenset("0123456789abcdefABCDEF")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_LITERALS = {"t": "rue", "f": "alse", "n": "ull"}
_CLOSES = {"{": "}", "[": "]"}

# Escaped characters beyond U+FFFF are pairs; strict readers refuse half of one.
_HIGH = re.compile("[dD][89abAB]")
_LOW_HALF = re.compile("[dD][c-fC-F]")
_LOW = r"\udc00"

# Of a number: what was read last, and what may come then.
_NUMBER = {
    "-": {"0": "0", **dict.fromkeys("123456789", "int")},
    "0": {".": ".", "e": "e", "E": "e"},
    "int": {**dict.fromkeys(_DIGITS, "int"), ".": ".", "e": "e", "E": "e"},
    ".": dict.fromkeys(_DIGITS, "fraction"),
    "fraction": {**dict.fromkeys(_DIGITS, "fraction"), "e": "e", "E": "e"},
    "e": {"+": "sign", "-": "sign", **dict.fromkeys(_DIGITS, "power")},
    "sign": dict.fromkeys(_DIGITS, "power"),
    "power": dict.fromkeys(_DIGITS, "power"),
}
_BETWEEN = frozenset({"value", "value_or_end", "key_or_end", "key", "colon", "comma"})
_IN_STRING = frozenset({"string", "escape", "hex", "pair", "pair_escape"})
_WHOLE_NUMBERS = frozenset({"0", "int", "fraction", "power"})


class JsonPrefix:
    """Takes characters as long as they can still become one JSON value.

    Args:
        only_object: the value must be an object.
    """

    def __init__(self, *, only_object: bool = True) -> None:
        self._only_object = only_object
        self._open: list[str] = []
        self._state = "value"
        self._is_key = False
        self._rest = ""
        self._digits = ""
        self._is_low = False
        self.is_complete = False
        self.is_broken = False

    def push(self, text: str) -> int:
        """How many characters were taken; fewer than given where JSON ends or is broken."""
        at = 0
        while at < len(text) and not (self.is_complete or self.is_broken):
            if self._state == "string" and (plain := _PLAIN.match(text, at)):
                at = plain.end()
                continue
            if not self._takes(text[at]):
                self.is_broken = not self.is_complete
            else:
                at += 1
        return at

    def closing(self) -> str:
        """What makes the text taken so far a JSON value."""
        ends = {
            "string": '"',
            "escape": '""',
            "hex": self._escape_rest() + '"',
            "pair": _LOW + '"',
            "pair_escape": _LOW[1:] + '"',
            "literal": self._rest,
            "colon": ":null",
            "key": '"":null',
            "value": "null",
        }
        end = ends.get(self._state, "")
        if self._state in _NUMBER and self._state not in _WHOLE_NUMBERS:
            end = "0"
        if self._state in _IN_STRING and self._is_key:
            end += ":null"
        return end + "".join(_CLOSES[bracket] for bracket in reversed(self._open))

    def _takes(self, char: str) -> bool:
        """Whether the character can come next; what cannot changes nothing."""
        if char in _BLANK and self._state in _BETWEEN:
            return True
        return self._steps[self._state](self, char)

    def _value(self, char: str) -> bool:
        if self._only_object and not self._open and char != "{":
            return False
        if char in _CLOSES:
            if len(self._open) == MAX_DEPTH:
                return False
            self._open.append(char)
            self._state = "key_or_end" if char == "{" else "value_or_end"
        elif char == '"':
            self._state, self._is_key = "string", False
        elif char in _LITERALS:
            self._state, self._rest = "literal", _LITERALS[char]
        elif char in "-0":
            self._state = char
        elif char in _DIGITS:
            self._state = "int"
        else:
            return False
        return True

    def _value_or_end(self, char: str) -> bool:
        return self._close(char) if char == "]" else self._value(char)

    def _key_or_end(self, char: str) -> bool:
        return self._close(char) if char == "}" else self._key(char)

    def _key(self, char: str) -> bool:
        if char != '"':
            return False
        self._state, self._is_key = "string", True
        return True

    def _colon(self, char: str) -> bool:
        if char != ":":
            return False
        self._state = "value"
        return True

    def _comma(self, char: str) -> bool:
        if char != ",":
            return self._close(char)
        self._state = "key" if self._open[-1] == "{" else "value"
        return True

    def _close(self, char: str) -> bool:
        if char != _CLOSES[self._open[-1]]:
            return False
        self._open.pop()
        self._after_value()
        return True

    def _string(self, char: str) -> bool:
        if char == "\\":
            self._state = "escape"
        elif char == '"' and self._is_key:
            self._state = "colon"
        elif char == '"':
            self._after_value()
        return char in '\\"'

    def _escape(self, char: str) -> bool:
        if char == "u":
            self._state, self._digits, self._is_low = "hex", "", False
        elif char in '"\\/bfnrt':
            self._state = "string"
        else:
            return False
        return True

    def _hex(self, char: str) -> bool:
        """A low half comes after a high one, and nowhere else."""
        digits = self._digits + char
        is_half = _LOW_HALF.match(digits) is not None
        if char not in _HEX or (self._is_low and not is_half and digits not in "dD"):
            return False
        if is_half and not self._is_low:
            return False
        self._digits = digits
        if len(digits) == 4:
            self._state = "pair" if _HIGH.match(digits) else "string"
        return True

    def _pair(self, char: str) -> bool:
        if char != "\\":
            return False
        self._state = "pair_escape"
        return True

    def _pair_escape(self, char: str) -> bool:
        if char != "u":
            return False
        self._state, self._digits, self._is_low = "hex", "", True
        return True

    def _escape_rest(self) -> str:
        """What completes an escape, and the pair that it begins."""
        digits = self._digits
        if self._is_low and len(digits) < 2:
            return "dc00"[len(digits) :]
        rest = "0" * (4 - len(digits))
        return rest + (_LOW if _HIGH.match(digits + rest) else "")

    def _literal(self, char: str) -> bool:
        if char != self._rest[0]:
            return False
        self._rest = self._rest[1:]
        if not self._rest:
            self._after_value()
        return True

    def _number(self, char: str) -> bool:
        following = _NUMBER[self._state].get(char)
        if following is not None:
            self._state = following
            return True
        if self._state not in _WHOLE_NUMBERS:
            return False
        self._after_value()
        return not self.is_complete and self._takes(char)

    def _after_value(self) -> None:
        self._state = "comma"
        self.is_complete = not self._open

    _steps: ClassVar[dict[str, Callable[[JsonPrefix, str], bool]]] = {
        "value": _value,
        "value_or_end": _value_or_end,
        "key_or_end": _key_or_end,
        "key": _key,
        "colon": _colon,
        "comma": _comma,
        "string": _string,
        "escape": _escape,
        "hex": _hex,
        "pair": _pair,
        "pair_escape": _pair_escape,
        "literal": _literal,
        **dict.fromkeys(_NUMBER, _number),
    }
