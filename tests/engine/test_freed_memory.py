"""Large messages that come and go take no new pages each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from services.engine.freed_memory import keep_freed_memory

ROUNDS = 200
PAGES = 256
"""Of a megabyte, at least as many as there are where pages are larger than 4 KiB."""

PROGRAM = f"""
import resource
from services.engine.freed_memory import keep_freed_memory
keep_freed_memory()
for round in range({ROUNDS} + 10):
    if round == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    messages = [b"x" * (2**20 + size) for size in range(4)]
    del messages
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not keep_freed_memory(), reason="the C library cannot keep freed memory")
def test_memory_of_a_large_message_is_used_again() -> None:
    command = [sys.executable, "-c", PROGRAM]
    faults = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)  # noqa: S603  # our own
    assert faults < ROUNDS * PAGES / 10
