"""Threads that take what the step loop leaves of the cores."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

NICENESS = 5
"""Of two threads on one core, one of niceness 0 gets three quarters and one of 5 the rest."""


def give_way() -> None:
    """The calling thread gives way to all that are as they were; only Linux knows threads so."""
    with suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
