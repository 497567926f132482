"""Tells watchers which blocks can be found, on the event loop's thread."""

from __future__ import annotations

import asyncio

from services.engine.loop import EngineLoop
from services.shared.stream.block_changes import BlockChanges
from services.shared.stream.source import BlockWatcher


class BlockFeed:
    """Has the step loop record changes while somebody watches, and no longer.

    What comes from the step thread comes in order: a watcher hears of each change after what was
    found covers those before.
    """

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop
        self._begun: dict[BlockWatcher, bool] = {}

    def watch(self, watcher: BlockWatcher) -> None:
        home = asyncio.get_running_loop()
        self._begun.setdefault(watcher, False)

        def changed(changes: BlockChanges) -> None:
            home.call_soon_threadsafe(self._changed, changes)

        def begin() -> None:
            found = self._loop.watch_blocks(changed)
            home.call_soon_threadsafe(self._found, watcher, found)

        self._loop.command(begin)

    def unwatch(self, watcher: BlockWatcher) -> None:
        self._begun.pop(watcher, None)
        if not self._begun:
            self._loop.command(self._loop.unwatch_blocks)

    def _found(self, watcher: BlockWatcher, addresses: list[bytes]) -> None:
        if watcher in self._begun:
            self._begun[watcher] = True
            watcher.found(addresses)

    def _changed(self, changes: BlockChanges) -> None:
        for watcher, begun in self._begun.items():
            if begun:
                watcher.changed(changes)
