"""Writes copies of blocks to a store, in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

from services.engine.giving_way import give_way
from services.engine.kv.figures import TierFigures
from services.engine.kv.line import taken_from
from services.engine.kv.record import HEADER_BYTES
from services.engine.kv.record_rooms import RecordRooms
from services.engine.kv.records import Records
from services.engine.kv.store import StoreFailed
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Skip

AT_A_TIME = 16
"""Copies that the store is asked for together whether it has them."""

_log = logging.getLogger(__name__)


Answer = TypeVar("Answer")


class SwitchedOff(Exception):
    """No call begins."""


class Copy(NamedTuple):
    """A block's bytes in `record`, after room for a header."""

    address: bytes
    record: memoryview


class RecordWriter:
    """Leaves out what the store has already, and everything while the cache is off.

    Args:
        rooms: that the copies are in, and go back to.
        written: called in the thread with addresses that are done, and with those of them that are
            in the store.
    """

    def __init__(
        self,
        records: Records,
        rooms: RecordRooms,
        switch: CacheSwitch,
        figures: TierFigures,
        written: Callable[[list[bytes], list[bytes]], None],
    ) -> None:
        self._records = records
        self._rooms = rooms
        self._switch = switch
        self._figures = figures
        self._written = written
        self._copies: SimpleQueue[Copy | None] = SimpleQueue()
        self._on_its_way = Lock()
        self._fails = False
        self._thread = Thread(target=self._run, name="cache-write", daemon=True)
        self._thread.start()

    def put(self, copy: Copy) -> None:
        """Queues a copy; the caller bounds how many wait."""
        self._copies.put(copy)

    def drop(self, cause: Skip) -> None:
        """Leaves out all that waits."""
        dropped = taken_from(self._copies)
        if dropped:
            self._figures.skip(cause, len(dropped))
            self._end(dropped, [])

    def quiet(self, timeout_s: float) -> bool:
        """Waits until no call is on its way, and tells whether that was so within the time."""
        is_quiet = self._on_its_way.acquire(timeout=timeout_s)
        if is_quiet:
            self._on_its_way.release()
        return is_quiet

    def close(self) -> None:
        """Ends after what waits."""
        self._copies.put(None)

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended within the time; if not, what waits is dropped."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self.drop(Skip.FAILED)
        return not self._thread.is_alive()

    def _run(self) -> None:
        give_way()
        while (first := self._copies.get()) is not None:
            copies = [first, *taken_from(self._copies, AT_A_TIME - 1)]
            self._end(copies, self._stored(copies))

    def _end(self, copies: Sequence[Copy], stored: list[bytes]) -> None:
        for copy in copies:
            self._rooms.give_back(copy.record)
        self._written([copy.address for copy in copies], stored)

    def _stored(self, copies: Sequence[Copy]) -> list[bytes]:
        """Addresses of those that are in the store now."""
        stored: list[bytes] = []
        cause: Skip | None = None
        try:
            for copy, is_there in zip(copies, self._look(copies), strict=True):
                self._store(copy, is_there)
                stored.append(copy.address)
            self._fails = False
        except SwitchedOff:
            cause = Skip.OFF
        except StoreFailed as error:
            cause = Skip.FAILED
            self._note(error)
        if cause is not None:
            self._figures.skip(cause, len(copies) - len(stored))
        return stored

    def _look(self, copies: Sequence[Copy]) -> list[bool]:
        addresses = [copy.address for copy in copies]
        return self._asked(lambda: self._records.present(addresses))

    def _store(self, copy: Copy, is_there: bool) -> None:
        if is_there:
            self._figures.skip(Skip.PRESENT)
        else:
            self._asked(lambda: self._records.write(copy.address, copy.record))
            self._figures.wrote(1, len(copy.record) - HEADER_BYTES)

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        """Looks at the switch while it holds what `quiet` waits for: off, no call begins."""
        with self._on_its_way:
            if not self._switch.enabled:
                raise SwitchedOff
            return question()

    def _note(self, error: StoreFailed) -> None:
        """Logs the first of several failures in a row."""
        if not self._fails:
            self._fails = True
            _log.warning("the service cache takes no blocks: %s", error)
