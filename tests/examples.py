"""How many examples of a long check are tried: a part by `make test`, all by `make fuzz`."""

from __future__ import annotations

import os

PART = 5


def examples(all_of_them: int) -> int:
    """Of each check that asks; `TOKENWAY_FUZZ=all` is what `make fuzz` sets."""
    return all_of_them if os.environ.get("TOKENWAY_FUZZ") == "all" else all_of_them // PART
