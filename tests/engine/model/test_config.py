"""config.json is read whole or refused by key."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from services.engine.model.config import RopeScaling, read_config
from services.shared.model_folder import CONFIG, BadModelFolder, ModelFolder
from tests.engine.model.tiny_folder import write_config

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}


def test_the_imported_model_is_understood(model_folder: ModelFolder) -> None:
    config = read_config(model_folder)
    assert (config.layers, config.heads, config.kv_heads, config.head_dim) == (30, 9, 3, 64)
    assert (config.vocabulary_size, config.context_length) == (49152, 8192)
    assert config.tied_embeddings
    assert config.eos_ids == (2,)


def test_what_older_files_leave_out_follows_from_the_rest(tmp_path: Path) -> None:
    folder = write_config(
        tmp_path,
        num_key_value_heads=...,
        head_dim=...,
        rope_theta=...,
        tie_word_embeddings=...,
        eos_token_id=...,
    )
    config = read_config(folder)
    assert (config.kv_heads, config.head_dim) == (6, 8)
    assert (config.rope_theta, config.tied_embeddings, config.eos_ids) == (10000.0, False, ())


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_parameters": {"rope_theta": 5e5, **LLAMA3}},
        {"rope_scaling": LLAMA3, "rope_theta": 5e5},
    ],
)
def test_both_ways_to_write_llama3_scaling_mean_the_same(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    config = read_config(write_config(tmp_path, **changes))
    assert config.rope_theta == 5e5
    assert config.rope_scaling == RopeScaling(
        factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context_length=256
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"architectures": ["EvilForCausalLM"]}, "architectures must be ['LlamaForCausalLM']"),
        ({"architectures": ...}, "architectures must be ['LlamaForCausalLM'], got nothing"),
        ({"hidden_size": ...}, "hidden_size must be an integer from 1 to 32768, got nothing"),
        ({"hidden_size": 10**12}, "hidden_size must be an integer from 1 to 32768"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be an integer from 1 to 512, got 0"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be an integer"),
        ({"vocab_size": "many"}, "vocab_size must be an integer from 1 to 1048576, got 'many'"),
        ({"num_key_value_heads": 4}, "num_attention_heads must be a multiple of 4, got 6"),
        ({"head_dim": 15}, "head_dim must be even, got 15"),
        ({"rms_norm_eps": ...}, "rms_norm_eps must be a number, got nothing"),
        ({"rms_norm_eps": -1e-5}, "rms_norm_eps must be positive and finite"),
        ({"rope_theta": float("inf")}, "rope_theta must be positive and finite"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false"),
        ({"eos_token_id": 100}, "eos_token_id must be one or more token IDs below 100"),
        ({"eos_token_id": [2, "x"]}, "eos_token_id must be one or more token IDs below 100"),
        ({"rope_scaling": {"type": "yarn"}}, "rope_type must be default or llama3"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rope_scaling: factor must be a number"),
        ({"rope_scaling": "llama3"}, "rope_scaling must be an object, got 'llama3'"),
        ({"attention_bias": True}, "attention_bias must be False, got True"),
        ({"mlp_bias": True}, "mlp_bias must be False, got True"),
        ({"hidden_act": "gelu"}, "hidden_act must be 'silu', got 'gelu'"),
    ],
)
def test_what_cannot_be_computed_is_named(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    folder = write_config(tmp_path, **changes)
    with pytest.raises(BadModelFolder) as caught:
        read_config(folder)
    assert told in str(caught.value)
    assert str(tmp_path / CONFIG) in str(caught.value)


def test_code_that_a_folder_names_is_ignored_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_config(tmp_path, auto_map={"AutoModel": "evil.Evil"})
    with caplog.at_level(logging.WARNING):
        read_config(folder)
    assert "auto_map is ignored" in caplog.text
