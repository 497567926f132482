"""The device by NVML: absent without a driver, told where one is, as far as it knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.engine.device_metrics import DeviceMetrics
from services.engine.nvml import DeviceFigures, DeviceMonitor, Throttle
from services.shared.stream.load import DeviceMemory
from tests.nvml_stub import NOT_SUPPORTED, Told, nvml_stub, tell

READ = """
import sys
from services.engine.nvml import DeviceMonitor
monitors = [DeviceMonitor(index) for index in (0, 1)]
for _ in sys.stdin:
    print(*(monitor.figures() for monitor in monitors), sep="; ", flush=True)
"""


@pytest.fixture(scope="module")
def stub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml_stub(tmp_path_factory.mktemp("nvml"))


def figures(folder: Path, *changes: Told) -> list[str]:
    """What a process reads of the devices 0 and 1, after each change."""
    with subprocess.Popen(  # noqa: S603  # this interpreter, on our own source
        [sys.executable, "-c", READ],
        env=os.environ | {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": "."},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        lines = []
        for told in changes:
            tell(folder, told)
            reader.stdin.write("\n")
            reader.stdin.flush()
            lines.append(reader.stdout.readline().strip())
        reader.stdin.close()
    return lines


def test_without_a_driver_all_is_absent() -> None:
    monitor = DeviceMonitor(0)
    assert monitor.figures() == DeviceFigures(index=0)
    assert not list(DeviceMetrics(monitor.figures).collect())


def test_what_nvml_tells_is_read_each_time_and_what_it_does_not_is_left_out(
    stub_folder: Path,
) -> None:
    known = DeviceFigures(
        index=0,
        memory=DeviceMemory(total_bytes=1000, used_bytes=300, free_bytes=700),
        utilization=42,
        temperature=61,
        throttled=frozenset(),
    )
    slow = DeviceFigures(
        index=0,
        memory=DeviceMemory(total_bytes=1000, used_bytes=990, free_bytes=10),
        throttled=frozenset({Throttle.HW_THERMAL}),
    )
    other = DeviceFigures(index=1)
    idle_and_hot = 0x1 | 0x40
    told = Told(
        used=990, utilization=NOT_SUPPORTED, temperature=NOT_SUPPORTED, reasons=idle_and_hot
    )
    read = figures(stub_folder, Told(), told, Told(total=NOT_SUPPORTED))
    assert read[:2] == [f"{known}; {other}", f"{slow}; {other}"]
    assert "memory=None, utilization=42" in read[2]
