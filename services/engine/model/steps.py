"""Which way of computing a step serves a model on a device."""

from __future__ import annotations

import importlib.util

import torch

from services.engine.model.config import ModelConfig
from services.engine.model.kv_pool import KvPool
from services.engine.model.layout import Layout
from services.engine.model.plain_step import PlainSteps
from services.engine.model.rope import rope_table
from services.engine.model.step import BeginStep, Step
from services.engine.threads import shares_pool


def begin_step(config: ModelConfig, device: torch.device) -> BeginStep:
    """Compiled kernels where they serve, plain torch elsewhere.

    The kernels take several threads only when these are torch's own: two pools on the same cores
    starve each other.
    """
    rope = rope_table(config).to(device)
    plain = PlainSteps(config, rope)
    if device.type != "cpu" or importlib.util.find_spec("numba") is None:
        return plain.begin
    from services.engine.model.kernel_step import KernelSteps, serves  # noqa: PLC0415 -- optional

    if not serves(config):
        return plain.begin
    kernels = KernelSteps(config, rope, workers=torch.get_num_threads() if shares_pool() else 1)

    def begin(residual: torch.Tensor, layout: Layout, pool: KvPool) -> Step:
        steps = kernels if pool.block_size == kernels.block_size else plain
        return steps.begin(residual, layout, pool)

    return begin
