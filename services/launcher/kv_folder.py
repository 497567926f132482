"""Whether the folder that engines of a machine share can be used, before they are told to."""

from __future__ import annotations

import os
from pathlib import Path


def can_hold(folder: Path) -> bool:
    """Whether files can be written in `folder`, which is there or can be made."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return nearest.is_dir() and os.access(nearest, os.R_OK | os.W_OK | os.X_OK)
