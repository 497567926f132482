"""A model folder of two small layers with random weights, and ways to spoil it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from services.engine.model.config import ModelConfig, read_config
from services.engine.model.weights import expected_shapes
from services.shared.model_folder import CONFIG, WEIGHTS, ModelFolder

TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "eos_token_id": [2, 7],
}


def write_config(path: Path, **changes: Any) -> ModelFolder:
    """Writes TINY with `changes`; a change to ... removes the key."""
    values = {key: value for key, value in (TINY | changes).items() if value is not ...}
    (path / CONFIG).write_text(json.dumps(values))
    return ModelFolder(path)


def random_weights(config: ModelConfig) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return {
        name: (torch.randn(shape, generator=generator) * 0.2 + (len(shape) == 1)).half()
        for name, shape in expected_shapes(config).items()
    }


def write_folder(path: Path, **changes: Any) -> ModelFolder:
    folder = write_config(path, **changes)
    save_file(random_weights(read_config(folder)), path / WEIGHTS)
    return folder
