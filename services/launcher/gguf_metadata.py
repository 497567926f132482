"""The keys and values of a GGUF file, read with limits and asked for by type."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TypeGuard

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf_cursor import Cursor

MAX_KEYS = 4096
MAX_KEY_BYTES = 65_535  # the format's own limit
MAX_TEXT_BYTES = 4 * 2**20
MAX_ARRAY_VALUES = 4 * 2**20  # of all arrays together; the largest vocabularies have 256,000 tokens

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _TEXT, _ARRAY = 7, 8, 9

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]


@dataclass(frozen=True, slots=True)
class Metadata:
    """Values by key. Every method raises BadModelFile with the key when the value does not fit."""

    values: dict[str, Value]

    def has(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise BadModelFile(f"{key} must be a string")
        return value

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise BadModelFile(f"{key} must be a bool")
        return value

    def integer(self, key: str, low: int, high: int) -> int:
        """An integer with low <= value <= high."""
        value = self._get(key)
        if not _is_integer(value):
            raise BadModelFile(f"{key} must be an integer")
        if not low <= value <= high:
            raise BadModelFile(f"{key} must be from {low} to {high}, got {value}")
        return value

    def positive(self, key: str) -> float:
        """A finite number above 0."""
        value = self._get(key)
        if not isinstance(value, float) or not 0 < value < math.inf:
            raise BadModelFile(f"{key} must be a finite number above 0, got {value!r:.40}")
        return value

    def texts(self, key: str) -> list[str]:
        values = self._list(key)
        texts = [value for value in values if isinstance(value, str)]
        if len(texts) != len(values):
            raise BadModelFile(f"{key} must hold strings")
        return texts

    def integers(self, key: str) -> list[int]:
        values = self._list(key)
        integers = [value for value in values if _is_integer(value)]
        if len(integers) != len(values):
            raise BadModelFile(f"{key} must hold integers")
        return integers

    def _get(self, key: str) -> Value:
        if key not in self.values:
            raise BadModelFile(f"{key} is missing")
        return self.values[key]

    def _list(self, key: str) -> list[Scalar]:
        value = self._get(key)
        if not isinstance(value, list):
            raise BadModelFile(f"{key} must be an array")
        return value


class MetadataReader:
    """Reads the pairs of keys and values where the cursor stands."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._array_values_left = MAX_ARRAY_VALUES

    def read(self, count: int) -> Metadata:
        if count > MAX_KEYS:
            raise BadModelFile(f"metadata must have at most {MAX_KEYS} keys, has {count}")
        values: dict[str, Value] = {}
        for index in range(count):
            key = self._cursor.text(f"metadata key {index}", limit=MAX_KEY_BYTES)
            if key in values:
                raise BadModelFile(f"metadata key {key[:80]!r} is there twice")
            values[key] = self._value(f"value of {key[:80]!r}")
        return Metadata(values)

    def _value(self, what: str) -> Value:
        kind = self._cursor.u32(f"type of {what}")
        return self._array(what) if kind == _ARRAY else self._scalar(kind, what)

    def _scalar(self, kind: int, what: str) -> Scalar:
        if kind == _TEXT:
            return self._cursor.text(what, limit=MAX_TEXT_BYTES)
        if kind == _BOOL:
            return _bool(self._cursor.bytes(1, what), what)
        if kind not in _NUMBERS:
            raise BadModelFile(f"{what} has the unknown type {kind}")
        return self._cursor.number(_NUMBERS[kind], what)

    def _array(self, what: str) -> list[Scalar]:
        kind = self._cursor.u32(f"element type of {what}")
        count = self._cursor.u64(f"length of {what}")
        if kind == _ARRAY:
            raise BadModelFile(f"{what} is an array of arrays")
        if count > self._array_values_left:
            raise BadModelFile(
                f"arrays must hold at most {MAX_ARRAY_VALUES} values together, "
                f"{what} declares {count}"
            )
        self._array_values_left -= count
        if kind not in _NUMBERS:
            return [self._scalar(kind, f"element {index} of {what}") for index in range(count)]
        packed = struct.Struct(f"<{count}{_NUMBERS[kind]}")
        return list(packed.unpack(self._cursor.bytes(packed.size, what)))


def _bool(data: bytes, what: str) -> bool:
    if data not in (b"\0", b"\1"):
        raise BadModelFile(f"{what} must be 0 or 1, got {data[0]}")
    return data == b"\1"


def _is_integer(value: Value) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
