"""Writes small GGUF files for tests, straight from the format's description."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

NUMBER_FORMATS = {
    "u8": (0, "B"),
    "i8": (1, "b"),
    "u16": (2, "H"),
    "i16": (3, "h"),
    "u32": (4, "I"),
    "i32": (5, "i"),
    "f32": (6, "f"),
    "bool": (7, "?"),
    "u64": (10, "Q"),
    "i64": (11, "q"),
    "f64": (12, "d"),
}


@dataclass(kw_only=True)
class GgufWriter:
    """`metadata` maps keys to (type, value), a list of a type is `[type]`; `tensors` map names to
    (number of the type, shape outermost first, bytes).
    """

    metadata: dict[str, tuple[str, Any]] = field(default_factory=dict)
    tensors: dict[str, tuple[int, tuple[int, ...], bytes]] = field(default_factory=dict)
    alignment: int = 32

    def header(self) -> bytes:
        out = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata))
        for key, (type_, value) in self.metadata.items():
            out += text(key) + _typed(type_, value)
        offset = 0
        for name, (number, shape, data) in self.tensors.items():
            out += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
            out += struct.pack("<IQ", number, offset)
            offset += len(data) + -len(data) % self.alignment
        return out

    def data(self) -> bytes:
        header = self.header()
        parts = [header, *(data for _, _, data in self.tensors.values())]
        padded = [part + bytes(-len(part) % self.alignment) for part in parts[:-1]]
        return b"".join([*padded, parts[-1]])


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(type_: str, value: Any) -> bytes:
    if type_.startswith("["):
        number, body = _number(type_[1:-1]), [_value(type_[1:-1], item) for item in value]
        return struct.pack("<IIQ", 9, number, len(value)) + b"".join(body)
    return struct.pack("<I", _number(type_)) + _value(type_, value)


def _number(type_: str) -> int:
    return 8 if type_ == "str" else NUMBER_FORMATS[type_][0]


def _value(type_: str, value: Any) -> bytes:
    return text(value) if type_ == "str" else struct.pack("<" + NUMBER_FORMATS[type_][1], value)
