"""Block events that wait for the client of one session, merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from services.shared.stream.block_changes import BlockChanges
from services.shared.stream.blocks import BlockEvents

MAX_ADDRESSES = 2048
"""Addresses in one message: the rest follows, so that tokens need not wait for all."""


class WaitingBlocks:
    """A watcher that holds at most what can be found and what could be, however slow the reader is.

    Args:
        on_waiting: called when something waits and nothing did before.
    """

    def __init__(self, on_waiting: Callable[[], None]) -> None:
        self._on_waiting = on_waiting
        self._is_asked = False
        self._changes = BlockChanges()
        self._is_snapshot = False
        self._sequence = 0

    def __bool__(self) -> bool:
        return self._is_snapshot or bool(self._changes)

    def ask(self) -> bool:
        """A snapshot is asked for; False if one is on its way: who asks twice gets one answer."""
        if self._is_asked:
            return False
        self._is_asked = True
        return True

    def found(self, addresses: Iterable[bytes]) -> None:
        waited = bool(self)
        self._changes = BlockChanges(addresses)
        self._is_snapshot = True
        if not waited:
            self._on_waiting()

    def changed(self, changes: BlockChanges) -> None:
        waited = bool(self)
        for address in changes.dropped:
            self._changes.drop(address)
        for address in changes.stored:
            self._changes.store(address)
        if not waited and self:
            self._on_waiting()

    def take(self) -> BlockEvents | None:
        """The next message, if anything waits."""
        if not self:
            return None
        self._sequence += 1
        dropped = _first(self._changes.dropped, MAX_ADDRESSES)
        stored = _first(self._changes.stored, MAX_ADDRESSES - len(dropped))
        snapshot, self._is_snapshot = self._is_snapshot, False
        if snapshot:
            self._is_asked = False
        return BlockEvents(
            sequence=self._sequence, snapshot=snapshot, stored=stored, dropped=dropped
        )


def _first(addresses: dict[bytes, None], count: int) -> list[bytes]:
    """Takes out so many."""
    taken = list(islice(addresses, count))
    for address in taken:
        del addresses[address]
    return taken
