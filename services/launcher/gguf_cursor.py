"""A position in a GGUF file that reads its values one after another, never past the end."""

from __future__ import annotations

import struct
from typing import BinaryIO

from services.launcher.bad_model_file import BadModelFile


class Cursor:
    """Reads little-endian values from a file of `size` bytes.

    Each length is compared with what the file still holds before anything is read or allocated.
    Every method takes `what`, the name of the value in error messages, and raises BadModelFile.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.size = size
        self.position = 0

    def bytes(self, count: int, what: str) -> bytes:
        left = self.size - self.position
        if count > left:
            raise BadModelFile(f"{what} needs {count} bytes, the file has {left} left")
        data = self.file.read(count)
        if len(data) != count:
            raise BadModelFile(f"{what} needs {count} bytes, the file gave {len(data)}")
        self.position += count
        return data

    def number(self, format_: str, what: str) -> int | float:
        """One number in a format of the struct module, for example `I` or `f`."""
        packed = struct.Struct("<" + format_)
        value: int | float = packed.unpack(self.bytes(packed.size, what))[0]
        return value

    def u32(self, what: str) -> int:
        return int.from_bytes(self.bytes(4, what), "little")

    def u64(self, what: str) -> int:
        return int.from_bytes(self.bytes(8, what), "little")

    def text(self, what: str, *, limit: int) -> str:
        """A string of at most `limit` bytes of UTF-8."""
        length = self.u64(f"length of {what}")
        if length > limit:
            raise BadModelFile(f"{what} must have at most {limit} bytes, has {length}")
        try:
            return self.bytes(length, what).decode()
        except UnicodeDecodeError as error:
            raise BadModelFile(f"{what} is not UTF-8: {error.reason}") from error
