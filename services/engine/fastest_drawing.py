"""Which arithmetic of a draw serves a device."""

from __future__ import annotations

import importlib.util

import torch

from services.engine.drawing import Drawing, PlainDrawing


def fastest_drawing(device: torch.device, workers: int) -> Drawing:
    """Compiled kernels on up to `workers` threads where logits are on a CPU and numba is there."""
    if device.type != "cpu" or importlib.util.find_spec("numba") is None:
        return PlainDrawing()
    from services.engine.compiled_drawing import CompiledDrawing  # noqa: PLC0415 -- optional

    return CompiledDrawing(workers)
