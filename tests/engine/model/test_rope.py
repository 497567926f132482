"""The rotary table is the one that transformers computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from services.engine.model.config import read_config
from services.engine.model.rope import rope_table, rotate
from tests.engine.model.test_config import LLAMA3
from tests.engine.model.tiny_folder import TINY, write_config


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "default", "rope_theta": 10000.0},
        {**LLAMA3, "rope_theta": 500000.0, "original_max_position_embeddings": 64},
    ],
)
def test_table_and_rotation_agree_with_transformers(tmp_path: Path, rope: dict[str, Any]) -> None:
    config = read_config(write_config(tmp_path, rope_parameters=rope, rope_theta=...))
    theirs: Any = LlamaConfig(**{**TINY, "rope_parameters": rope, "rope_theta": None})
    positions = torch.arange(config.context_length)
    cosine, sine = LlamaRotaryEmbedding(theirs)(torch.zeros(1), positions[None])
    heads = torch.randn(config.context_length, 3, config.head_dim)
    left, right = heads.chunk(2, dim=-1)
    crossed = torch.cat((-right, left), dim=-1)
    turned = heads * cosine[0][:, None] + crossed * sine[0][:, None]
    torch.testing.assert_close(rotate(heads, rope_table(config)), turned, atol=1e-5, rtol=1e-5)
