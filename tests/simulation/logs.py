"""Bugs that the services swallowed and logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tests.simulation.judge import Judge

SERVICES = logging.getLogger("services")


class _Bugs(logging.Handler):
    """Errors with an exception are bugs; other errors tell of a replica's faults."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(logging.ERROR)
        self._judge = judge

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._judge.broken("no bug", f"{record.getMessage()}: {record.exc_info[1]!r}")
        else:
            self._judge.named[record.getMessage().partition(" ")[0]] += 1
            self._judge.history.note("logged", text=record.getMessage())


@contextmanager
def logged_bugs(judge: Judge) -> Iterator[None]:
    """What is logged inside as a bug breaks the world."""
    handler = _Bugs(judge)
    propagate = SERVICES.propagate
    SERVICES.addHandler(handler)
    SERVICES.propagate = False
    try:
        yield
    finally:
        SERVICES.removeHandler(handler)
        SERVICES.propagate = propagate
