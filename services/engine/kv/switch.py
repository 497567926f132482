"""Whether an engine may use what lies outside of its own memory."""

from __future__ import annotations

from collections.abc import Callable


class CacheSwitch:
    """On or off for the service cache and for other engines; for any thread to read.

    Off holds at once: who reads or writes asks before each operation, and drops what comes after.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._listeners: list[Callable[[bool], None]] = []

    @property
    def enabled(self) -> bool:
        return self._enabled

    def listen(self, listener: Callable[[bool], None]) -> None:
        """Calls `listener` with each new state, on the thread that set it."""
        self._listeners.append(listener)

    def set(self, *, enabled: bool) -> None:
        if enabled != self._enabled:
            self._enabled = enabled
            for listener in self._listeners:
                listener(enabled)
