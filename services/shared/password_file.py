"""A file that holds a password and nothing else."""

from __future__ import annotations

from pathlib import Path

from services.shared.config import BadConfig

MAX_PASSWORD_BYTES = 4096


def read_password(key: str, path: Path) -> str:
    """The file's text, without the end of its line.

    Args:
        key: of the setting that names the file.
        path: the file.

    Raises:
        BadConfig: it cannot be read or holds no password; the text shows nothing of it.
    """
    try:
        with path.open("rb") as file:
            held = file.read(MAX_PASSWORD_BYTES + 1)
        password = held.decode().rstrip("\r\n")
    except OSError as error:
        raise BadConfig(f"{key} {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        # Without its cause: that error shows the bytes.
        raise BadConfig(f"{key} {path} must hold a password in UTF-8") from None
    if not password or len(held) > MAX_PASSWORD_BYTES:
        raise BadConfig(
            f"{key} {path} must hold between 1 and {MAX_PASSWORD_BYTES} bytes, got {len(held)}"
        )
    return password
