"""Rotary position embedding as a table of cosines and sines."""

from __future__ import annotations

import math

import torch

from services.engine.model.config import ModelConfig, RopeScaling


def rope_table(config: ModelConfig) -> torch.Tensor:
    """Cosines, then sines, of each position: [context_length, head_dim], fp32.

    Element i of each half turns dimensions i and i + head_dim / 2 (Su et al., arXiv:2104.09864,
    in the pairing of the Hugging Face layout).
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    frequencies = 1.0 / config.rope_theta**exponents
    if config.rope_scaling is not None:
        frequencies = _stretched(frequencies, config.rope_scaling)
    angles = torch.arange(config.context_length, dtype=torch.float32)[:, None] * frequencies
    return torch.cat((angles.cos(), angles.sin()), dim=1)


def _stretched(frequencies: torch.Tensor, scaling: RopeScaling) -> torch.Tensor:
    """Long waves are slowed by `factor`, short ones kept, those between blended (Llama 3.1)."""
    turns = scaling.original_context_length * frequencies / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def rotate(heads: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Turns `heads` [rows, n, head_dim] by the rows [rows, head_dim] of the table."""
    cosine, sine = turns.to(heads.dtype).unsqueeze(1).chunk(2, dim=-1)
    left, right = heads.chunk(2, dim=-1)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)
