"""What a step computes between the linear layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from services.engine.model.kv_pool import KvPool
from services.engine.model.layout import Layout


class Step(Protocol):
    """The residual rows of one step, and the small operations on them.

    What a method returns is valid until it is called again.
    """

    def norm(self, weight: torch.Tensor) -> torch.Tensor:
        """The residual's rows, each divided by its root mean square, times `weight` [hidden]."""

    def add_norm(self, delta: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Adds `delta` to the residual, then as `norm`."""

    def attend(self, qkv: torch.Tensor, layer: int) -> torch.Tensor:
        """Turns queries and keys, keeps keys and values, attends; [rows, heads * head_dim].

        `qkv` [rows, query_size + 2 * kv_size] may be overwritten.
        """

    def silu_up(self, gate_up: torch.Tensor) -> torch.Tensor:
        """SiLU of the left half of `gate_up` [rows, 2 * n], times the right half; [rows, n]."""


BeginStep = Callable[[torch.Tensor, Layout, KvPool], Step]
"""Begins a step whose residual is the embedded rows [rows, hidden]; they may be overwritten."""
