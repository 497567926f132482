"""What happened in a world, in order, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import blake2b

Field = str | int | float | list[int] | None


class History:
    """Grows by one entry for each thing that happened.

    Args:
        time: the clock of the world.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self.entries: list[tuple[float, str, dict[str, Field]]] = []

    def note(self, what: str, **fields: Field) -> None:
        self.entries.append((round(self._time(), 6), what, fields))

    def lines(self) -> Iterator[str]:
        for when, what, fields in self.entries:
            yield json.dumps({"t": when, "what": what, **fields})

    def digest(self) -> str:
        """Equal for equal histories."""
        digest = blake2b(digest_size=16)
        for line in self.lines():
            digest.update(line.encode() + b"\n")
        return digest.hexdigest()
