"""Weights come whole from safetensors, or the file and tensor at fault is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from services.engine.model.config import read_config
from services.engine.model.weights import (
    EMBEDDING,
    FINAL_NORM,
    LM_HEAD,
    expected_shapes,
    read_weights,
)
from services.shared.model_folder import WEIGHTS, WEIGHTS_INDEX, BadModelFolder, ModelFolder
from tests.engine.model.tiny_folder import random_weights, write_config, write_folder

Weights = dict[str, torch.Tensor]


def told(folder: ModelFolder) -> str:
    with pytest.raises(BadModelFolder) as caught:
        read_weights(folder, read_config(folder))
    return str(caught.value)


def spoiled(path: Path, **changes: torch.Tensor | None) -> ModelFolder:
    folder = write_config(path)
    weights: dict[str, torch.Tensor | None] = {**random_weights(read_config(folder)), **changes}
    save_file({name: kept for name, kept in weights.items() if kept is not None}, path / WEIGHTS)
    return folder


def test_all_tensors_of_a_folder_are_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    config = read_config(folder)
    weights = read_weights(folder, config)
    written = random_weights(config)
    assert weights.keys() == written.keys()
    assert all(torch.equal(weights[name], written[name]) for name in written)


def test_shards_are_read_through_their_index(tmp_path: Path) -> None:
    folder = write_config(tmp_path)
    config = read_config(folder)
    weights = random_weights(config)
    names = sorted(weights)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, own in shards.items():
        save_file({name: weights[name] for name in own}, tmp_path / shard)
    index = {name: shard for shard, own in shards.items() for name in own}
    (tmp_path / WEIGHTS_INDEX).write_text(json.dumps({"weight_map": index}))
    assert read_weights(folder, config).keys() == weights.keys()


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    assert told(spoiled(tmp_path, **{FINAL_NORM: None})).endswith(FINAL_NORM)


def test_an_unexpected_tensor_is_named(tmp_path: Path) -> None:
    message = told(spoiled(tmp_path, adapter=torch.zeros(1)))
    assert message == f"{tmp_path / WEIGHTS}: unexpected tensor adapter"


def test_a_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    message = told(spoiled(tmp_path, **{FINAL_NORM: torch.zeros(47)}))
    assert f"{FINAL_NORM} must be [48] by config.json, is [47]" in message


def test_a_tensor_of_another_type_is_named(tmp_path: Path) -> None:
    message = told(spoiled(tmp_path, **{FINAL_NORM: torch.zeros(48, dtype=torch.int8)}))
    assert f"{FINAL_NORM} must be of" in message
    assert message.endswith("is I8")


def test_a_tensor_in_two_files_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (tmp_path / WEIGHTS).rename(tmp_path / "a.safetensors")
    (tmp_path / "b.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes())
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (tmp_path / WEIGHTS_INDEX).write_text(json.dumps(index))
    assert "is in another file too" in told(folder)


def test_what_follows_from_other_tensors_may_be_there(tmp_path: Path) -> None:
    extra = {
        LM_HEAD: torch.zeros(100, 48),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(8),
    }
    folder = spoiled(tmp_path, **extra)
    assert not extra.keys() & read_weights(folder, read_config(folder)).keys()


def test_untied_embeddings_need_a_head(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, tie_word_embeddings=False))
    assert expected_shapes(config)[LM_HEAD] == expected_shapes(config)[EMBEDDING] == (100, 48)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    path = tmp_path / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1])
    assert told(folder).startswith(f"{path} is truncated")


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0[]"])
def test_a_file_that_is_no_safetensors_is_named(tmp_path: Path, content: bytes) -> None:
    folder = write_config(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(content)
    assert told(folder).startswith(f"{tmp_path / WEIGHTS} is truncated or no safetensors file")


def test_a_folder_of_pickles_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_config(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert told(folder).startswith(f"{tmp_path / 'pytorch_model.bin'} is not read")


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    assert told(write_config(tmp_path)) == f"{tmp_path / WEIGHTS} is missing"
