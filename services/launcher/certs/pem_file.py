"""Files in PEM that are replaced whole, several of a folder as near to one moment as may be."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER_MODE = 0o700
_PUBLIC, _SECRET = 0o644, 0o600


@dataclass(frozen=True, slots=True)
class PemFile:
    """A name and what stands there; a secret is for its owner alone."""

    name: str
    data: bytes = field(repr=False)
    is_secret: bool = False


def write_files(folder: Path, files: Sequence[PemFile]) -> None:
    """Writes all beside their places first and then puts them there in the order they are given.

    Readers see each file from before or from after. Without the folder that is made, for its owner
    alone.
    """
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    beside = {file: folder / f".{file.name}.{secrets.token_hex(8)}" for file in files}
    try:
        for file, path in beside.items():
            _write(path, file)
        for file, path in beside.items():
            path.replace(folder / file.name)
    except BaseException:
        for path in beside.values():
            path.unlink(missing_ok=True)
        raise


def _write(path: Path, file: PemFile) -> None:
    mode = _SECRET if file.is_secret else _PUBLIC
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as opened:
        os.fchmod(descriptor, mode)  # whatever the umask: the key's readers are its owner's affair
        opened.write(file.data)
        opened.flush()
        os.fsync(descriptor)
