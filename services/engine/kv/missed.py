"""Why a block does not come, as an error."""

from __future__ import annotations

from services.shared.stream.events import CacheMiss


class Missed(Exception):
    """The next block does not come."""

    def __init__(self, cause: CacheMiss) -> None:
        super().__init__(cause.name.lower())
        self.cause = cause
