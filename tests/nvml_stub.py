"""NVML as a small C library, whose one device tells what a file says."""

from __future__ import annotations

import subprocess
from dataclasses import astuple, dataclass
from pathlib import Path

SOURCE = r"""
#include <stdio.h>

enum { TOTAL, USED, UTILIZATION, TEMPERATURE, REASONS, COUNT };
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3 };

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } utilization_t;

static int told(int which, long long *value) {
    long long all[COUNT];
    FILE *file = fopen(FIGURES, "r");
    if (!file) return NOT_SUPPORTED;
    int count = 0;
    while (count < COUNT && fscanf(file, "%lld", &all[count]) == 1) count++;
    fclose(file);
    if (count < COUNT || all[which] < 0) return NOT_SUPPORTED;
    *value = all[which];
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { return SUCCESS; }
int nvmlInit_v2(void) { return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    static int only;
    if (index > 0) return INVALID_ARGUMENT;
    *device = &only;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    long long total, used;
    int failed = told(TOTAL, &total) | told(USED, &used);
    if (failed) return failed;
    memory->total = total;
    memory->used = used;
    memory->free = total - used;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) {
    long long value;
    int failed = told(UTILIZATION, &value);
    if (failed) return failed;
    rates->gpu = value;
    rates->memory = 0;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *temperature) {
    long long value;
    int failed = told(TEMPERATURE, &value);
    if (!failed) *temperature = value;
    return failed;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    long long value;
    int failed = told(REASONS, &value);
    if (!failed) *reasons = value;
    return failed;
}
"""

NOT_SUPPORTED = -1
"""In the place of a figure that the device does not know."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """Bytes, percent, degrees, and NVML's bits; in the order in which the library reads them."""

    total: int = 1000
    used: int = 300
    utilization: int = 42
    temperature: int = 61
    reasons: int = 0


def nvml_stub(folder: Path, told: Told = Told()) -> Path:
    """Builds it in `folder`; gives the folder, for LD_LIBRARY_PATH."""
    tell(folder, told)
    source, library = folder / "nvml.c", folder / "libnvidia-ml.so.1"
    source.write_text(SOURCE)
    names = (f"-Wl,-soname,{library.name}", f'-DFIGURES="{_figures(folder)}"')
    command = ["gcc", "-shared", "-fPIC", *names, "-o", str(library), str(source)]
    subprocess.run(command, check=True)  # noqa: S603  # a compiler, on our own source
    return folder


def tell(folder: Path, told: Told) -> None:
    """From now on that is what the device in `folder` tells."""
    fresh = folder / "figures.new"
    fresh.write_text(" ".join(map(str, astuple(told))))
    fresh.replace(_figures(folder))


def _figures(folder: Path) -> Path:
    return folder / "figures"
