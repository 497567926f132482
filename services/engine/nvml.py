"""Memory of the NVIDIA device that holds the model, read through NVML."""

from __future__ import annotations

import pynvml

from services.shared.stream.load import DeviceMemory


class DeviceMonitor:
    """Reads one device. Where there is no driver or no such device, it reads None.

    Args:
        index: the device as NVML counts.
    """

    def __init__(self, index: int) -> None:
        self._handle = _handle(index)

    def read(self) -> DeviceMemory | None:
        if self._handle is None:
            return None
        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(self._handle)
        except pynvml.NVMLError:
            return None
        return DeviceMemory(
            total_bytes=memory.total, used_bytes=memory.used, free_bytes=memory.free
        )


def _handle(index: int) -> object | None:
    try:
        pynvml.nvmlInit()
        handle: object = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError:
        return None
    return handle
