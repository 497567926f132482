"""Device memory by NVML: absent without a driver, told where one is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.engine.nvml import DeviceMonitor

# The functions that nvidia-ml-py calls for memory, with figures that a test can recognise.
STUB = """
typedef struct { unsigned long long total, free, used; } memory_t;
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    static int only;
    if (index > 0) return 2;
    *device = &only;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    memory->total = 1000;
    memory->used = 300;
    memory->free = 700;
    return 0;
}
"""

READ = """
from services.engine.nvml import DeviceMonitor
print(DeviceMonitor(0).memory(), DeviceMonitor(1).memory())
"""


@pytest.fixture
def stub_folder(tmp_path: Path) -> Path:
    source = tmp_path / "stub.c"
    source.write_text(STUB)
    library = tmp_path / "libnvidia-ml.so.1"
    name = f"-Wl,-soname,{library.name}"
    command = ["gcc", "-shared", "-fPIC", name, "-o", str(library), str(source)]
    subprocess.run(command, check=True)  # noqa: S603  # a compiler, on our own source
    return tmp_path


def test_without_a_driver_memory_is_absent() -> None:
    assert DeviceMonitor(0).memory() is None


def test_memory_is_what_nvml_tells(stub_folder: Path) -> None:
    told = subprocess.run(  # noqa: S603  # this interpreter, on our own source
        [sys.executable, "-c", READ],
        env=os.environ | {"LD_LIBRARY_PATH": str(stub_folder), "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.strip() == ("DeviceMemory(total_bytes=1000, used_bytes=300, free_bytes=700) None")
