"""Typed reading of JSON: each value knows its path, so that each error names it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from services.shared.errors import InvalidRequest, InvalidType, MissingField

T = TypeVar("T")

MAX_SHOWN = 60

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value and where it stands, for example `messages[2].content`."""

    json: Any
    path: str

    def wrong_type(self, wanted: str) -> InvalidType:
        kind = _KINDS[type(self.json)]
        return InvalidType(f"{self.path} must be {wanted}, got {kind}", field=self.path)

    def invalid(self, wanted: str) -> InvalidRequest:
        return InvalidRequest(f"{self.path} must be {wanted}, got {self.shown()}", field=self.path)

    def shown(self) -> str:
        """The value for an error message, short and printable."""
        shown = json.dumps(self.json)
        return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."


Reader = Callable[[Value], T]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object's fields. Null is the same as absent; fields that nobody asks for are ignored."""

    values: Mapping[str, Any]
    path: str = ""

    def path_of(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def value(self, name: str) -> Value:
        return Value(self.values.get(name), self.path_of(name))

    def optional(self, name: str, reader: Reader[T]) -> T | None:
        return reader(self.value(name)) if self.has(name) else None

    def required(self, name: str, reader: Reader[T]) -> T:
        if not self.has(name):
            path = self.path_of(name)
            raise MissingField(f"{path} must be set", field=path)
        return reader(self.value(name))

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.optional(name, flag)
        return default if value is None else value


def text(value: Value) -> str:
    """A string of Unicode scalar values without NUL."""
    if not isinstance(value.json, str):
        raise value.wrong_type("a string")
    fault = fault_of(value.json)
    if fault is not None:
        raise InvalidRequest(f"{value.path} must not contain {fault}", field=value.path)
    return value.json


def fault_of(string: str) -> str | None:
    """What in a string no tokenizer and no encoder can take."""
    if "\0" in string:
        return "the character U+0000"
    if string.isascii():
        return None
    try:
        string.encode()
    except UnicodeEncodeError:
        return "lone surrogates"
    return None


def filled_text(value: Value) -> str:
    """A string that is not empty."""
    string = text(value)
    if not string:
        raise InvalidRequest(f"{value.path} must not be empty", field=value.path)
    return string


def flag(value: Value) -> bool:
    if not isinstance(value.json, bool):
        raise value.wrong_type("a boolean")
    return value.json


def integer(low: int, high: int) -> Reader[int]:
    """Whole numbers in [low, high]; 3.0 is one."""

    def read(value: Value) -> int:
        number = value.json
        if type(number) not in (int, float):
            raise value.wrong_type("an integer")
        if isinstance(number, float) and not number.is_integer():
            raise value.invalid("an integer")
        if not low <= number <= high:
            raise value.invalid(f"{low} to {high}")
        return int(number)

    return read


def number(low: float, high: float, *, above: bool = False) -> Reader[float]:
    """Finite numbers in [low, high], or in (low, high] with `above`."""

    def read(value: Value) -> float:
        if type(value.json) not in (int, float):
            raise value.wrong_type("a number")
        if not low <= value.json <= high or (above and value.json == low):
            raise value.invalid(f"above {low} and at most {high}" if above else f"{low} to {high}")
        return float(value.json)

    return read


def choice(known: Mapping[str, T]) -> Reader[T]:
    """One of the strings that are keys of `known`; gives what stands there."""

    def read(value: Value) -> T:
        string = text(value)
        if string not in known:
            raise value.invalid(f"one of {', '.join(known)}")
        return known[string]

    return read


def items(value: Value) -> list[Value]:
    if not isinstance(value.json, list):
        raise value.wrong_type("an array")
    return [Value(item, f"{value.path}[{index}]") for index, item in enumerate(value.json)]


def list_of(reader: Reader[T], *, at_least: int = 0, at_most: int = 100_000) -> Reader[list[T]]:
    def read(value: Value) -> list[T]:
        found = items(value)
        if not at_least <= len(found) <= at_most:
            raise InvalidRequest(
                f"{value.path} must have {at_least} to {at_most} items, got {len(found)}",
                field=value.path,
            )
        return [reader(item) for item in found]

    return read


def fields(value: Value) -> Fields:
    if not isinstance(value.json, dict):
        raise value.wrong_type("an object")
    return Fields(value.json, value.path)


def free_object(value: Value) -> dict[str, Any]:
    """An object of any content, such as a JSON schema; its strings and numbers are checked."""
    if not isinstance(value.json, dict):
        raise value.wrong_type("an object")
    waiting: list[Any] = [value.json]
    while waiting:
        inner = waiting.pop()
        fault = _fault_in(inner)
        if fault is not None:
            raise InvalidRequest(f"{value.path} must not contain {fault}", field=value.path)
        if isinstance(inner, dict):
            waiting += inner.keys()
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return value.json


def _fault_in(value: Any) -> str | None:
    if isinstance(value, str):
        return fault_of(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "numbers beyond the range of a double"
    return None
