"""The client's side of a session's block events: none may be missing."""

from __future__ import annotations

import logging
from collections.abc import Callable

from services.shared.stream.blocks import BlockEvents, BlockSink

_log = logging.getLogger(__name__)


class BlockReader:
    """Passes on a snapshot and what follows it without a gap; asks for another one after a gap.

    Args:
        name: names the server in the log.
        ask: asks the server for a snapshot.
    """

    def __init__(self, name: str, sink: BlockSink, ask: Callable[[], None]) -> None:
        self._name = name
        self._sink = sink
        self._ask = ask
        self._next = 1
        self._asked = False

    def begin(self) -> None:
        """A new session, whose events count from 1."""
        self._next = 1
        self._asked = True
        self._ask()

    def receive(self, events: BlockEvents) -> None:
        if events.snapshot:
            self._asked = False
        elif events.sequence != self._next:
            self._missed(events.sequence)
        self._next = events.sequence + 1
        if not self._asked:
            self._sink(events)

    def _missed(self, sequence: int) -> None:
        """Asks even if it has asked before: the answer may be what is missing."""
        if not self._asked:
            message = "%s sent block events %d instead of %d; asked for all of them"
            _log.warning(message, self._name, sequence, self._next)
        self._asked = True
        self._ask()
