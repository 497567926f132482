"""When it is worth while to ask again, and how HTTP tells it."""

from __future__ import annotations

import math

UNKNOWN_S = 1.0
"""Told where nothing better is known."""

LONGEST_S = 120.0
"""Client libraries that are told a longer time do not ask again at all."""

SPREAD = 0.5
"""Share of a wait by which those who are told the same are spread over time."""

RETRY_LATER = frozenset({429, 503, 529})

Header = tuple[bytes, bytes]


def spread(wait_s: float, draw: float) -> float:
    """The wait and up to half of it more. `draw` is a random number from 0 to 1."""
    return wait_s * (1 + SPREAD * draw)


def retry_headers(status: int, retry_after_s: float | None) -> list[Header]:
    """`retry-after` in whole seconds, and the exact wait as client libraries read it first."""
    if status not in RETRY_LATER:
        return []
    if retry_after_s is None:
        return [(b"retry-after", b"%d" % math.ceil(UNKNOWN_S))]
    wait_s = min(max(retry_after_s, 0.001), LONGEST_S)
    return [
        (b"retry-after", b"%d" % math.ceil(wait_s)),
        (b"retry-after-ms", b"%d" % math.ceil(1000 * wait_s)),
    ]
