"""How long the garbage collector keeps the process from its work."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from services.shared.histogram import Histogram

BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class GcPauses:
    """Hears of each collection inside `measured`, whoever asked for it.

    Attributes:
        seconds: by generation.
    """

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self.seconds = tuple(Histogram(BOUNDS_S) for _ in gc.get_threshold())
        self._now = now
        self._began: float | None = None

    @contextmanager
    def measured(self) -> Iterator[None]:
        gc.callbacks.append(self.hear)
        try:
            yield
        finally:
            gc.callbacks.remove(self.hear)

    def hear(self, phase: str, told: dict[str, Any]) -> None:
        """As the collector calls it; collections do not overlap."""
        if phase == "start":
            self._began = self._now()
        elif self._began is not None:
            self.seconds[told["generation"]].note(self._now() - self._began)
            self._began = None
