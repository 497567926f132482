"""A GGUF of one Llama layer with random weights, and its vocabulary of eight tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.launcher.gguf_writer import GgufWriter

TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "ab", "Ġ", "<|note|>"]
HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FEED_FORWARD = 32, 4, 2, 8, 64
SHAPES = {
    "token_embd.weight": (len(TOKENS), HIDDEN),
    "output_norm.weight": (HIDDEN,),
    "blk.0.attn_norm.weight": (HIDDEN,),
    "blk.0.attn_q.weight": (HEADS * HEAD_DIM, HIDDEN),
    "blk.0.attn_k.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
    "blk.0.attn_v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
    "blk.0.attn_output.weight": (HIDDEN, HEADS * HEAD_DIM),
    "blk.0.ffn_norm.weight": (HIDDEN,),
    "blk.0.ffn_gate.weight": (FEED_FORWARD, HIDDEN),
    "blk.0.ffn_up.weight": (FEED_FORWARD, HIDDEN),
    "blk.0.ffn_down.weight": (HIDDEN, FEED_FORWARD),
}


def weights() -> dict[str, NDArray[np.float16]]:
    generator = np.random.default_rng(7)
    return {
        name: generator.standard_normal(shape).astype(np.float16) for name, shape in SHAPES.items()
    }


def tiny_llama() -> GgufWriter:
    return GgufWriter(
        metadata=_metadata(),
        tensors={name: (1, value.shape, value.tobytes()) for name, value in weights().items()},
    )


def _metadata() -> dict[str, tuple[str, Any]]:
    return {
        "general.architecture": ("str", "llama"),
        "general.license": ("str", "apache-2.0"),
        "llama.block_count": ("u32", 1),
        "llama.context_length": ("u32", 256),
        "llama.embedding_length": ("u32", HIDDEN),
        "llama.feed_forward_length": ("u32", FEED_FORWARD),
        "llama.attention.head_count": ("u32", HEADS),
        "llama.attention.head_count_kv": ("u32", KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": ("f32", 1e-5),
        "llama.rope.freq_base": ("f32", 1e5),
        "llama.rope.dimension_count": ("u32", HEAD_DIM),
        "tokenizer.ggml.model": ("str", "gpt2"),
        "tokenizer.ggml.pre": ("str", "smollm"),
        "tokenizer.ggml.tokens": ("[str]", TOKENS),
        "tokenizer.ggml.token_type": ("[i32]", [3, 3, 3, 1, 1, 1, 1, 4]),
        "tokenizer.ggml.merges": ("[str]", ["a b"]),
        "tokenizer.ggml.bos_token_id": ("u32", 1),
        "tokenizer.ggml.eos_token_id": ("u32", 2),
        "tokenizer.ggml.add_bos_token": ("bool", False),
        "tokenizer.chat_template": ("str", "{{ messages[0].content }}"),
    }
