"""Who hears of requests, and which requests are open."""

from __future__ import annotations

from collections.abc import Iterable

from services.codec.request_figures import Door, RequestFigures
from services.codec.request_record import Account, Listener, RequestRecord


class Listeners:
    """Keeps each request from its beginning until its end was told.

    Attributes:
        started: requests since the start, by door.
        figures: of those that ended.
    """

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self.started = dict.fromkeys(Door, 0)
        self.figures = RequestFigures()
        self._listeners = [self.figures.hear, *listeners]
        self._open: dict[int, tuple[Door, Account]] = {}

    def append(self, listener: Listener) -> None:
        """It hears of each request at its end from now on."""
        self._listeners.append(listener)

    def begin(self, door: Door, account: Account) -> None:
        """Args: account: of the request that begins."""
        self.started[door] += 1
        self._open[id(account)] = door, account

    def end(self, record: RequestRecord) -> None:
        """A request has ended."""
        del self._open[id(record.account)]
        for listener in self._listeners:
            listener(record)

    def running(self) -> dict[Door, int]:
        """Requests that are open, by door."""
        counts = dict.fromkeys(Door, 0)
        for door, _ in self._open.values():
            counts[door] += 1
        return counts

    def streams(self) -> int:
        """Open requests that are answered as a stream."""
        return sum(account.stream for _, account in self._open.values())
