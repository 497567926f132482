"""The tensors of a model folder, each checked by name, type and shape before it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from services.engine.model.config import ModelConfig
from services.shared.model_folder import WEIGHTS, WEIGHTS_INDEX, BadModelFolder, ModelFolder

EMBEDDING = "model.embed_tokens.weight"
FINAL_NORM = "model.norm.weight"
LM_HEAD = "lm_head.weight"

DTYPES = ("F16", "BF16", "F32")
PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
"""Ends of names of weights that are pickles, which nothing here opens."""


def read_weights(folder: ModelFolder, config: ModelConfig) -> dict[str, torch.Tensor]:
    """All tensors that the model needs, on the CPU, in the file's own type.

    Raises:
        BadModelFolder: a file or tensor is missing, truncated, unexpected, of another shape or
            type; it is named.
    """
    shapes = expected_shapes(config)
    weights: dict[str, torch.Tensor] = {}
    for path in _files(folder):
        for name, tensor in _tensors(path, shapes):
            if name in weights:
                raise BadModelFolder(f"{path}: {name} is in another file too")
            weights[name] = tensor
    missing = sorted(shapes.keys() - weights.keys())
    if missing:
        raise BadModelFolder(f"{folder.path}: no file has the tensor {missing[0]}")
    return weights


def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    shapes = {
        EMBEDDING: (config.vocabulary_size, config.hidden_size),
        FINAL_NORM: (config.hidden_size,),
    }
    if not config.tied_embeddings:
        shapes[LM_HEAD] = shapes[EMBEDDING]
    for layer in range(config.layers):
        for name, shape in _layer_shapes(config).items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return shapes


def _layer_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    hidden, wide = config.hidden_size, config.intermediate_size
    return {
        "input_layernorm": (hidden,),
        "self_attn.q_proj": (config.query_size, hidden),
        "self_attn.k_proj": (config.kv_size, hidden),
        "self_attn.v_proj": (config.kv_size, hidden),
        "self_attn.o_proj": (hidden, config.query_size),
        "post_attention_layernorm": (hidden,),
        "mlp.gate_proj": (wide, hidden),
        "mlp.up_proj": (wide, hidden),
        "mlp.down_proj": (hidden, wide),
    }


def _files(folder: ModelFolder) -> list[Path]:
    if not folder.has(WEIGHTS) and not folder.has(WEIGHTS_INDEX):
        for path in sorted(p for p in folder.path.iterdir() if p.suffix in PICKLES):
            raise BadModelFolder(f"{path} is not read: weights must be safetensors ({WEIGHTS})")
    return folder.weight_files()


def _tensors(path: Path, shapes: dict[str, tuple[int, ...]]) -> Iterator[tuple[str, torch.Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 -- the file is no mapping
                if _is_derived(name, shapes):
                    continue
                _check(path, name, file.get_slice(name), shapes)
                yield name, file.get_tensor(name)
    except SafetensorError as error:
        raise BadModelFolder(f"{path} is truncated or no safetensors file: {error}") from error


def _is_derived(name: str, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether some exporters write the tensor although it follows from the others."""
    return name.endswith(".rotary_emb.inv_freq") or (name == LM_HEAD and LM_HEAD not in shapes)


def _check(path: Path, name: str, header: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    if name not in shapes:
        raise BadModelFolder(f"{path}: unexpected tensor {name}")
    shape = tuple(header.get_shape())
    if shape != shapes[name]:
        raise BadModelFolder(
            f"{path}: {name} must be {list(shapes[name])} by config.json, is {list(shape)}"
        )
    if header.get_dtype() not in DTYPES:
        raise BadModelFolder(f"{path}: {name} must be of {DTYPES}, is {header.get_dtype()}")
