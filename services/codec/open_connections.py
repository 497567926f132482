"""The connections of a door, all of them and by address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class OpenConnections:
    """Counts; takes no more than it may.

    Args:
        most: at a time.
        most_each: of one address.
        speaks_for_many: whether an address is a proxy's, whose connections are other people's.
    """

    def __init__(
        self, most: int, most_each: int, speaks_for_many: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._most = most
        self._most_each = most_each
        self._speaks_for_many = speaks_for_many
        self._by_address: Counter[str] = Counter()
        self._count = 0

    def enter(self, address: str) -> str | None:
        """Why the connection is not taken; None: it is, and must leave again."""
        if self._count >= self._most:
            return f"the server takes {self._most} connections at a time, try again later"
        if self._by_address[address] >= self._most_each and not self._speaks_for_many(address):
            return f"an address may have {self._most_each} connections at a time"
        self._count += 1
        self._by_address[address] += 1
        return None

    def leave(self, address: str) -> None:
        self._count -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
