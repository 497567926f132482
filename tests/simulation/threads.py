"""Worker threads of a simulated process: what they do takes a while and ends in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tests.simulation.virtual_time import VirtualLoop

COPY_S = 0.002
"""How long a thread takes to copy a block."""


class Copiers(ThreadPoolExecutor):
    """Does each thing a little later, on the loop's own thread; once begun it is not stopped."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(1)
        self._loop = loop

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_running_or_notify_cancel()
        self._loop.call_later(COPY_S, lambda: done.set_result(work(*args, **named)))
        return done
