"""config.json and generation_config.json of a Llama model, from the metadata of its GGUF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf import Gguf
from services.launcher.gguf_metadata import Metadata
from services.launcher.gguf_tokenizer import GgufTokenizer

MAX_LAYERS = 1024
MAX_WIDTH = 1 << 20
MAX_CONTEXT = 1 << 24


@dataclass(frozen=True, kw_only=True, slots=True)
class LlamaConfig:
    """Sizes of a Llama model; `tied` if the output layer is the token embedding."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocab: int
    context: int
    rope_theta: float
    rms_eps: float
    tied: bool

    def json(self, tokenizer: GgufTokenizer) -> dict[str, Any]:
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.feed_forward,
            "vocab_size": self.vocab,
            "max_position_embeddings": self.context,
            "rope_theta": self.rope_theta,
            "rms_norm_eps": self.rms_eps,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": self.tied,
            "torch_dtype": "float16",
            "bos_token_id": tokenizer.bos,
            "eos_token_id": tokenizer.eos,
            "pad_token_id": tokenizer.pad,
        }


def generation_config(tokenizer: GgufTokenizer) -> dict[str, Any]:
    return {
        "bos_token_id": tokenizer.bos,
        "eos_token_id": tokenizer.ends,
        "pad_token_id": tokenizer.pad,
    }


def llama_config(gguf: Gguf, vocab: int) -> LlamaConfig:
    """The sizes that the metadata tells, checked against each other.

    Raises:
        BadModelFile: another architecture, a feature that this import does not know, a bad size.
    """
    metadata = gguf.metadata
    _check_features(metadata)
    hidden = metadata.integer("llama.embedding_length", 1, MAX_WIDTH)
    heads = metadata.integer("llama.attention.head_count", 1, hidden)
    kv_heads = _integer_or(metadata, "llama.attention.head_count_kv", heads)
    head_dim = _integer_or(metadata, "llama.attention.key_length", hidden // heads)
    if heads % kv_heads:
        raise BadModelFile(f"{heads} heads cannot share {kv_heads} key-value heads evenly")
    _check_rope(metadata, head_dim)
    return LlamaConfig(
        hidden=hidden,
        layers=metadata.integer("llama.block_count", 1, MAX_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        feed_forward=metadata.integer("llama.feed_forward_length", 1, MAX_WIDTH),
        vocab=vocab,
        context=metadata.integer("llama.context_length", 1, MAX_CONTEXT),
        rope_theta=_shortest(metadata.positive("llama.rope.freq_base")),
        rms_eps=_shortest(metadata.positive("llama.attention.layer_norm_rms_epsilon")),
        tied="output.weight" not in gguf.tensors,
    )


def _check_features(metadata: Metadata) -> None:
    architecture = metadata.text("general.architecture")
    if architecture != "llama":
        raise BadModelFile(f"general.architecture must be llama, got {architecture!r:.40}")
    scaling = "llama.rope.scaling.type"
    if metadata.has(scaling) and metadata.text(scaling) != "none":
        raise BadModelFile(f"{scaling} must be none, got {metadata.text(scaling)!r:.40}")


def _check_rope(metadata: Metadata, head_dim: int) -> None:
    rotated = _integer_or(metadata, "llama.rope.dimension_count", head_dim)
    if rotated != head_dim or head_dim % 2:
        raise BadModelFile(
            f"llama.rope.dimension_count must be the even size of a head, {head_dim}, got {rotated}"
        )


def _integer_or(metadata: Metadata, key: str, default: int) -> int:
    return metadata.integer(key, 1, MAX_WIDTH) if metadata.has(key) else default


def _shortest(value: float) -> float:
    """The number as a person wrote it: the format stores fp32, 1e-5 comes as 9.99999974e-06."""
    return float(f"{value:.7g}")
