from __future__ import annotations

import io
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf import read_gguf
from tests.launcher.gguf_writer import NUMBER_FORMATS, GgufWriter, text
from tests.launcher.tiny_llama import SHAPES, tiny_llama, weights

TINY = tiny_llama()
TINY_DATA = TINY.data()
HEADER = len(TINY.header())


class StrictFile(io.BytesIO):
    """Fails when asked for bytes that it does not have, as for a declared size."""

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert 0 <= size <= len(self.getbuffer()) - self.tell()
        return super().read(size)


def strict(data: bytes) -> BinaryIO:
    return StrictFile(data)


def read_all(data: bytes) -> None:
    gguf = read_gguf(strict(data))
    for tensor in gguf.tensors.values():
        assert len(gguf.bytes_of(tensor)) == tensor.size


def test_tensors_come_back_as_written() -> None:
    gguf = read_gguf(strict(TINY_DATA))
    assert {name: tensor.shape for name, tensor in gguf.tensors.items()} == SHAPES
    for name, value in weights().items():
        assert gguf.bytes_of(gguf.tensors[name]) == value.tobytes()


VALUES = {
    "str": st.text(),
    "bool": st.booleans(),
    "f32": st.floats(width=32, allow_nan=False),
    "f64": st.floats(allow_nan=False),
}
INTEGERS = {
    name: st.integers(
        -(2 ** (8 * size - 1)) if name[0] == "i" else 0,
        2 ** (8 * size - (name[0] == "i")) - 1,
    )
    for name, size in (
        (name, struct.calcsize(format_))
        for name, (_, format_) in NUMBER_FORMATS.items()
        if name[0] in "iu"
    )
}
TYPED = st.one_of(
    [st.tuples(st.just(name), values) for name, values in (VALUES | INTEGERS).items()]
    + [st.tuples(st.just(f"[{name}]"), st.lists(v)) for name, v in (VALUES | INTEGERS).items()]
)


@given(st.dictionaries(st.text().filter(lambda key: key != "general.alignment"), TYPED))
def test_metadata_comes_back_as_written(metadata: dict[str, tuple[str, object]]) -> None:
    data = GgufWriter(metadata=metadata).data()
    read = read_gguf(strict(data)).metadata
    assert read.values == {key: value for key, (_, value) in metadata.items()}


@given(st.integers(0, len(TINY_DATA) - 1))
def test_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(BadModelFile):
        read_gguf(strict(TINY_DATA[:length]))


EDGES = st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1])


@given(st.integers(0, HEADER - 8), EDGES | st.integers(0, 2**64 - 1), st.sampled_from("BHIQ"))
def test_changed_header_reads_nothing_past_the_end(at: int, value: int, size: str) -> None:
    packed = struct.pack("<Q", value)[: struct.calcsize(size)]
    data = TINY_DATA[:at] + packed + TINY_DATA[at + len(packed) :]
    with suppress(BadModelFile):
        read_all(data)


@given(st.binary(max_size=400))
def test_random_bytes_read_nothing_past_the_end(tail: bytes) -> None:
    with pytest.raises(BadModelFile):
        read_all(b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + tail[:20])
    with suppress(BadModelFile):
        read_all(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tail)


def key_values(*pairs: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def tensors(*entries: bytes) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(entries), 0) + b"".join(entries)
    return head + bytes(256)


def entry(name: str, shape: tuple[int, ...], type_: int, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type_, offset)


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "magic number needs 4 bytes, the file has 0 left"),
    "magic": (b"GGML" + TINY_DATA[4:], "must begin with b'GGUF', got b'GGML'"),
    "version 1": (b"GGUF\1\0\0\0", "version must be 2 or 3, little-endian, got 1"),
    "big-endian": (b"GGUF\0\0\0\3", "version must be 2 or 3, little-endian, got 50331648"),
    "tensors": (
        b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0),
        "at most 65536 tensors, got 9223372036854775808",
    ),
    "keys": (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "at most 4096 keys"),
    "key length": (key_values(struct.pack("<Q", 2**64 - 1)), "metadata key 0 must have at most"),
    "key UTF-8": (key_values(struct.pack("<Q", 1) + b"\xff"), "metadata key 0 is not UTF-8"),
    "key twice": (key_values(*[text("k") + struct.pack("<IB", 0, 1)] * 2), "'k' is there twice"),
    "value type": (key_values(text("k") + struct.pack("<I", 13)), "'k' has the unknown type 13"),
    "bool": (key_values(text("k") + struct.pack("<IB", 7, 2)), "'k' must be 0 or 1, got 2"),
    "text": (key_values(text("k") + struct.pack("<IQ", 8, 900)), "'k' needs 900 bytes"),
    "array length": (
        key_values(text("k") + struct.pack("<IIQ", 9, 4, 2**61)),
        "arrays must hold at most 4194304 values together",
    ),
    "array past the end": (
        key_values(text("k") + struct.pack("<IIQ", 9, 12, 4_000_000)),
        "needs 32000000 bytes, the file has 0 left",
    ),
    "arrays together": (
        key_values(
            text("k") + struct.pack("<IIQ", 9, 0, 3) + bytes(3),
            text("l") + struct.pack("<IIQ", 9, 0, 4 * 2**20 - 2),
        ),
        "'l' declares 4194302",
    ),
    "nested arrays": (key_values(text("k") + struct.pack("<IIQ", 9, 9, 1)), "array of arrays"),
    "alignment 0": (
        key_values(text("general.alignment") + struct.pack("<II", 4, 0)),
        "general.alignment must be from 8 to 65536, got 0",
    ),
    "alignment 12": (
        key_values(text("general.alignment") + struct.pack("<II", 4, 12)),
        "general.alignment must be a multiple of 8, got 12",
    ),
    "alignment text": (
        key_values(text("general.alignment") + struct.pack("<I", 8) + text("32")),
        "general.alignment must be an integer",
    ),
    "tensor name": (tensors(entry("n" * 65, (1,), 0)), "name of tensor 0 must have at most 64"),
    "tensor twice": (tensors(*[entry("t", (8,), 0)] * 2), "tensor 't' is there twice"),
    "no dimension": (tensors(entry("t", (), 0)), "'t' must have 1 to 4 dimensions, has 0"),
    "dimensions": (tensors(entry("t", (1,) * 5, 0)), "'t' must have 1 to 4 dimensions, has 5"),
    "zero dimension": (tensors(entry("t", (8, 0), 0)), "shape is (0, 8)"),
    "type": (tensors(entry("t", (32,), 12)), "'t' must be of type F32, F16, Q4_1, Q8_0, is of"),
    "type name": (tensors(entry("t", (32,), 12)), "is of type Q4_K"),
    "type number": (tensors(entry("t", (32,), 99)), "is of type 99"),
    "rows": (tensors(entry("t", (33, 2), 8)), "rows of a multiple of 32 values"),
    "product": (
        tensors(entry("t", (2**32, 2**32, 2**32, 2**32), 0)),
        "'t' must end within the file of 337 bytes",
    ),
    "product wraps": (tensors(entry("t", (2**62, 4), 0)), "must end within the file"),
    "offset": (tensors(entry("t", (8,), 0, offset=2**64 - 32)), "must end within the file"),
    "offset alignment": (tensors(entry("t", (8,), 0, offset=4)), "must be a multiple of 32, got 4"),
    "overlap": (
        tensors(entry("t", (16,), 0), entry("u", (8,), 0, offset=32)),
        "tensors 't' and 'u' overlap",
    ),
}


@pytest.mark.parametrize(("data", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_file_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(BadModelFile) as caught:
        read_all(data)
    assert message in str(caught.value)


def test_other_alignment_is_followed() -> None:
    writer = replace(TINY, alignment=128)
    writer.metadata = {**TINY.metadata, "general.alignment": ("u32", 128)}
    gguf = read_gguf(strict(writer.data()))
    for name, value in weights().items():
        assert gguf.bytes_of(gguf.tensors[name]) == value.tobytes()


def test_file_that_shrinks_while_it_is_read_is_refused() -> None:
    file = io.BytesIO(TINY_DATA)
    gguf = read_gguf(file)
    file.truncate(HEADER)
    with pytest.raises(BadModelFile, match="the file gave"):
        gguf.bytes_of(gguf.tensors["blk.0.ffn_down.weight"])


TYPE_ERRORS: dict[str, tuple[Callable[..., object], str]] = {
    "text": (lambda m: m.text("n"), "n must be a string"),
    "flag": (lambda m: m.flag("n"), "n must be a bool"),
    "texts": (lambda m: m.texts("mixed"), "mixed must hold strings"),
    "integers": (lambda m: m.integers("words"), "words must hold integers"),
    "list": (lambda m: m.texts("n"), "n must be an array"),
    "bool is no integer": (lambda m: m.integer("b", 0, 9), "b must be an integer"),
    "range": (lambda m: m.integer("n", 0, 2), "n must be from 0 to 2, got 3"),
    "nan": (lambda m: m.positive("nan"), "nan must be a finite number above 0, got nan"),
    "missing": (lambda m: m.text("gone"), "gone is missing"),
}


@pytest.mark.parametrize(("ask", "message"), TYPE_ERRORS.values(), ids=TYPE_ERRORS)
def test_value_of_another_type_is_refused_by_key(ask: Callable[..., object], message: str) -> None:
    data = GgufWriter(
        metadata={
            "n": ("u32", 3),
            "b": ("bool", True),
            "nan": ("f32", float("nan")),
            "mixed": ("[u8]", [1]),
            "words": ("[str]", ["a"]),
        }
    ).data()
    with pytest.raises(BadModelFile, match=message):
        ask(read_gguf(strict(data)).metadata)
