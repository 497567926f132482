"""A safetensors file of fp16 tensors, written one tensor at a time.

The library's own writer wants all tensors in memory at once; the format is a length (8 bytes), a
JSON header and the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from services.launcher.dequantize import Half


def write_safetensors(
    path: Path, shapes: Mapping[str, tuple[int, ...]], tensors: Iterable[Half]
) -> None:
    """Writes tensors, which must come in the order of `shapes` and have those shapes."""
    with path.open("xb") as file:
        file.write(_header(shapes))
        for (name, shape), tensor in zip(shapes.items(), tensors, strict=True):
            if tensor.shape != shape or tensor.dtype != "<f2":
                raise ValueError(
                    f"{name} must be fp16 of {shape}, is {tensor.dtype} {tensor.shape}"
                )
            file.write(tensor.tobytes())


def _header(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data starts at a multiple of 8
    return len(text).to_bytes(8, "little") + text
