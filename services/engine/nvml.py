"""The NVIDIA device that holds the model, read through NVML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import pynvml

from services.shared.stream.load import DeviceMemory

T = TypeVar("T")


class Throttle(StrEnum):
    """Why a device runs slower than it could."""

    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    SYNC_BOOST = "sync_boost"
    SW_THERMAL = "sw_thermal"
    HW_THERMAL = "hw_thermal"
    HW_POWER_BRAKE = "hw_power_brake"


_BITS = {
    Throttle.SW_POWER_CAP: pynvml.nvmlClocksThrottleReasonSwPowerCap,
    Throttle.HW_SLOWDOWN: pynvml.nvmlClocksThrottleReasonHwSlowdown,
    Throttle.SYNC_BOOST: pynvml.nvmlClocksThrottleReasonSyncBoost,
    Throttle.SW_THERMAL: pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    Throttle.HW_THERMAL: pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    Throttle.HW_POWER_BRAKE: pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceFigures:
    """One device now; None where NVML does not tell.

    Args:
        index: the device as NVML counts.
        utilization: percent of the last moment in which it computed.
        temperature: degrees Celsius.
        throttled: why it runs slower than it could; empty where it does not.
    """

    index: int
    memory: DeviceMemory | None = None
    utilization: int | None = None
    temperature: int | None = None
    throttled: frozenset[Throttle] | None = None


class DeviceMonitor:
    """Reads one device. Where there is no driver or no such device, it reads nothing.

    Args:
        index: the device as NVML counts.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._handle = _told(lambda: _handle(index))

    def memory(self) -> DeviceMemory | None:
        return self._read(_memory)

    def utilization(self) -> int | None:
        """Percent of the last moment in which it computed."""
        return self._read(_utilization)

    def figures(self) -> DeviceFigures:
        return DeviceFigures(
            index=self.index,
            memory=self.memory(),
            utilization=self.utilization(),
            temperature=self._read(_temperature),
            throttled=self._read(_throttled),
        )

    def _read(self, read: Callable[[object], T]) -> T | None:
        handle = self._handle
        return None if handle is None else _told(lambda: read(handle))


def _told(ask: Callable[[], T]) -> T | None:
    """What NVML tells; None where it does not know, or not yet, or has no such function."""
    try:
        return ask()
    except pynvml.NVMLError:
        return None


def _handle(index: int) -> object:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def _memory(handle: object) -> DeviceMemory:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return DeviceMemory(total_bytes=memory.total, used_bytes=memory.used, free_bytes=memory.free)


def _utilization(handle: object) -> int:
    return int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def _temperature(handle: object) -> int:
    return int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def _throttled(handle: object) -> frozenset[Throttle]:
    reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return frozenset(reason for reason, bit in _BITS.items() if reasons & bit)
