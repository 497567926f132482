"""Threads that give way do so alone."""

from __future__ import annotations

import os
import threading

from services.engine.giving_way import NICENESS, give_way
from services.engine.kv.crew import Crew


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_thread_gives_way_and_the_others_do_not() -> None:
    before, told = niceness(), []

    def run() -> None:
        give_way()
        told.append(niceness())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert told == [NICENESS]
    assert niceness() == before


def test_who_reads_the_service_cache_gives_way_to_the_step_loop() -> None:
    crew = Crew("test", 1)
    assert crew.call(niceness).result() == NICENESS
    crew.close()
    assert crew.join(10)
