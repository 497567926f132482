"""Garbage collection between steps, never inside one."""

from __future__ import annotations

import gc
import time

# A step under load leaves a few thousand objects; this bounds what waits for an idle moment.
YOUNG_OBJECTS = 200_000


class Collector:
    """Decides when the process collects, once it has taken over; before, Python does.

    The pauses are counted, in microseconds.
    """

    def __init__(self) -> None:
        self.pauses = 0
        self.paused_us = 0
        self._decides = False
        self._dirty = False

    def take_over(self) -> None:
        """What lives now is never looked at again, and nothing collects by itself."""
        gc.collect()
        gc.freeze()
        gc.disable()
        self._decides = self._dirty = True

    def after_step(self) -> None:
        """Collects only if too much has gathered."""
        self._dirty = self._decides
        if self._decides and gc.get_count()[0] > YOUNG_OBJECTS:
            self._collect(1)

    def when_idle(self) -> None:
        """Collects everything, once after each busy time."""
        if self._dirty:
            self._dirty = False
            self._collect(2)

    def _collect(self, generation: int) -> None:
        began = time.perf_counter_ns()
        gc.collect(generation)
        self.pauses += 1
        self.paused_us += (time.perf_counter_ns() - began) // 1000
