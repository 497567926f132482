"""A GGUF file: its metadata, the list of its tensors and their bytes.

The format is that of ggml's docs/gguf.md, versions 2 and 3, little-endian. Nothing that a file
declares is believed before it is compared with the file's size.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf_cursor import Cursor
from services.launcher.gguf_metadata import Metadata, MetadataReader
from services.launcher.tensor_type import OTHER_TYPES, TENSOR_TYPES, TensorType

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_TENSORS = 65_536
MAX_TENSOR_NAME_BYTES = 64  # ggml's own limit
MAX_DIMENSIONS = 4
MAX_ALIGNMENT = 65_536
DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """Where a tensor lies: `shape` is outermost dimension first, `start` counts from the file's."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Gguf:
    """A GGUF file whose header was checked; `file` must stay open while tensors are read."""

    file: BinaryIO
    metadata: Metadata
    tensors: dict[str, Tensor]

    def bytes_of(self, tensor: Tensor) -> bytes:
        """The stored bytes, `tensor.size` of them."""
        self.file.seek(tensor.start)
        data = self.file.read(tensor.size)
        if len(data) != tensor.size:
            raise BadModelFile(
                f"tensor {tensor.name!r} needs {tensor.size} bytes, the file gave {len(data)}"
            )
        return data


def read_gguf(file: BinaryIO) -> Gguf:
    """Reads and checks the header of a seekable file.

    Raises:
        BadModelFile: what is wrong, with the limit and the value.
    """
    cursor = Cursor(file, file.seek(0, os.SEEK_END))
    file.seek(0)
    tensor_count, key_count = _counts(cursor)
    metadata = MetadataReader(cursor).read(key_count)
    alignment = _alignment(metadata)
    tensors: dict[str, Tensor] = {}
    for index in range(tensor_count):
        tensor = _tensor(cursor, index)
        if tensor.name in tensors:
            raise BadModelFile(f"tensor {tensor.name!r} is there twice")
        tensors[tensor.name] = tensor
    data_start = -(-cursor.position // alignment) * alignment
    placed = {
        name: _placed(tensor, data_start, alignment, cursor.size)
        for name, tensor in tensors.items()
    }
    _check_overlap(placed)
    return Gguf(file, metadata, placed)


def _counts(cursor: Cursor) -> tuple[int, int]:
    magic = cursor.bytes(4, "magic number")
    if magic != MAGIC:
        raise BadModelFile(f"a GGUF file must begin with {MAGIC!r}, got {magic!r}")
    version = cursor.u32("version")
    if version not in VERSIONS:
        raise BadModelFile(f"GGUF version must be 2 or 3, little-endian, got {version}")
    tensor_count = cursor.u64("number of tensors")
    if tensor_count > MAX_TENSORS:
        raise BadModelFile(f"there must be at most {MAX_TENSORS} tensors, got {tensor_count}")
    return tensor_count, cursor.u64("number of metadata keys")


def _alignment(metadata: Metadata) -> int:
    key = "general.alignment"
    if not metadata.has(key):
        return DEFAULT_ALIGNMENT
    alignment = metadata.integer(key, 8, MAX_ALIGNMENT)
    if alignment % 8:
        raise BadModelFile(f"{key} must be a multiple of 8, got {alignment}")
    return alignment


def _tensor(cursor: Cursor, index: int) -> Tensor:
    """The entry of a tensor; its start still counts from the data section's."""
    name = cursor.text(f"name of tensor {index}", limit=MAX_TENSOR_NAME_BYTES)
    what = f"tensor {name!r}"
    dimensions = cursor.u32(f"dimensions of {what}")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise BadModelFile(f"{what} must have 1 to {MAX_DIMENSIONS} dimensions, has {dimensions}")
    shape = tuple(cursor.u64(f"shape of {what}") for _ in range(dimensions))[::-1]
    type_ = _type(cursor.u32(f"type of {what}"), what)
    if 0 in shape or shape[-1] % type_.values:
        raise BadModelFile(
            f"{what} of type {type_.name} must have rows of a multiple of {type_.values} values, "
            f"shape is {shape}"
        )
    return Tensor(
        name=name,
        shape=shape,
        type=type_,
        start=cursor.u64(f"offset of {what}"),
        size=math.prod(shape) // type_.values * type_.size,
    )


def _type(number: int, what: str) -> TensorType:
    if number not in TENSOR_TYPES:
        known = ", ".join(type_.name for type_ in TENSOR_TYPES.values())
        name = OTHER_TYPES.get(number, number)
        raise BadModelFile(f"{what} must be of type {known}, is of type {name}")
    return TENSOR_TYPES[number]


def _placed(tensor: Tensor, data_start: int, alignment: int, file_size: int) -> Tensor:
    """The tensor with its start in the file, once all of it lies inside."""
    if tensor.start % alignment:
        raise BadModelFile(
            f"offset of tensor {tensor.name!r} must be a multiple of {alignment}, "
            f"got {tensor.start}"
        )
    start = data_start + tensor.start
    if start + tensor.size > file_size:
        raise BadModelFile(
            f"tensor {tensor.name!r} must end within the file of {file_size} bytes, "
            f"ends at {start + tensor.size}"
        )
    return Tensor(
        name=tensor.name, shape=tensor.shape, type=tensor.type, start=start, size=tensor.size
    )


def _check_overlap(tensors: dict[str, Tensor]) -> None:
    for before, after in pairwise(sorted(tensors.values(), key=lambda tensor: tensor.start)):
        if after.start < before.start + before.size:
            raise BadModelFile(f"tensors {before.name!r} and {after.name!r} overlap")
