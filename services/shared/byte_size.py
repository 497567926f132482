"""An amount of memory, as people write it in settings."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_FORM = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)")


class ByteSize(int):
    """Bytes. Settings may say `536870912`, `512MiB` (2**20) or `4GB` (10**9)."""

    @classmethod
    def parse(cls, text: str) -> ByteSize:
        """Raises ValueError when `text` is no amount of bytes."""
        match = _FORM.fullmatch(text.strip())
        unit = _UNITS.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise ValueError("must be bytes, for example 512MiB or 4GB")
        number = match[1]
        return cls(int(float(number) * unit) if "." in number else int(number) * unit)
