"""Time as the router's decisions see it; it comes from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Seconds that only go forward, and calls at one of them; an event loop is one."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer: ...
