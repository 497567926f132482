"""What the kernel tells of this process, under the names that Prometheus' own clients use."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from services.shared.metric_families import Family, counter, gauge

BOOT = Path("/proc/stat")
STAT = Path("/proc/self/stat")
OPEN_FILES = Path("/proc/self/fd")


class OwnProcess:
    """Tells nothing where there is no /proc."""

    def __init__(self) -> None:
        self._booted_at = _booted_at() if STAT.is_file() else None

    def collect(self) -> Iterator[Family]:
        if self._booted_at is None:
            return
        user, system, start, virtual, resident = _fields(14, 15, 22, 23, 24)
        ticks = os.sysconf("SC_CLK_TCK")
        yield counter("process_cpu_seconds", "User and system time.", (user + system) / ticks)
        began_at = self._booted_at + start / ticks
        yield gauge("process_start_time_seconds", "When it began, since 1970.", began_at)
        resident_bytes = resident * os.sysconf("SC_PAGE_SIZE")
        yield gauge("process_resident_memory_bytes", "Resident memory.", resident_bytes)
        yield gauge("process_virtual_memory_bytes", "Virtual memory.", virtual)
        yield gauge("process_open_fds", "Open files.", sum(1 for _ in OPEN_FILES.iterdir()))
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield gauge("process_max_fds", "Files that may be open.", most)


def _fields(*numbers: int) -> list[int]:
    """Of `stat`, numbered as in proc(5)."""
    # The second is the program's name and may hold anything.
    after_name = STAT.read_bytes().rpartition(b") ")[2].split()
    return [int(after_name[number - 3]) for number in numbers]


def _booted_at() -> int:
    (line,) = (line for line in BOOT.read_text().splitlines() if line.startswith("btime "))
    return int(line.removeprefix("btime "))
