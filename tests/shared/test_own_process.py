"""The figures of a process agree with what it knows of itself."""

from __future__ import annotations

import os
import resource
import sys
import time

import pytest

from services.shared.own_process import STAT, OwnProcess

pytestmark = pytest.mark.skipif(not STAT.is_file(), reason="there is no /proc")


def told() -> dict[str, float]:
    figures = {}
    for family in OwnProcess().collect():
        ((_, figure),) = family.figures
        assert isinstance(figure, (int, float))
        figures[family.name] = figure
    return figures


def test_time_and_memory_are_those_of_this_process() -> None:
    spent_before = sum(os.times()[:2])
    figures = told()
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert spent_before - 2 * tick_s <= figures["process_cpu_seconds_total"]
    assert figures["process_cpu_seconds_total"] <= sum(os.times()[:2]) + 2 * tick_s
    assert figures["process_resident_memory_bytes"] < figures["process_virtual_memory_bytes"]
    most_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert 1e6 < figures["process_resident_memory_bytes"] <= 1.1 * most_bytes


def test_it_began_after_the_machine_and_before_now() -> None:
    began_at = told()["process_start_time_seconds"]
    now = time.time()
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert now - up_s - 2 <= began_at <= now + 2
    assert told()["process_start_time_seconds"] == began_at


def test_an_open_file_is_counted() -> None:
    before = told()
    with open(sys.executable, "rb"):  # noqa: PTH123  # any file
        assert told()["process_open_fds"] == before["process_open_fds"] + 1
    assert before["process_max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
