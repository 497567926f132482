"""How sequences come to the step loop."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol

from services.engine.loop import EngineLoop
from services.engine.sequence import Sequence


class Entry(Protocol):
    """For the event loop's thread."""

    @property
    def fetches_blocks(self) -> bool:
        """Whether blocks can be fetched from other engines."""

    @property
    def waiting(self) -> Iterable[Sequence]:
        """Sequences that the step loop has not got yet."""

    def add(self, sequence: Sequence) -> None:
        """Has the step loop take it, soon or later."""

    def drop(self, sequence: Sequence) -> None:
        """It is not wanted any more: if the step loop has not got it yet, it never will."""


class DirectEntry:
    """At once."""

    fetches_blocks = False
    waiting = ()

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop

    def add(self, sequence: Sequence) -> None:
        self._loop.command(partial(self._loop.add, sequence))

    def drop(self, sequence: Sequence) -> None:
        """The step loop has got it."""
