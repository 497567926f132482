"""The tensors of a Llama model: their names in a GGUF and in a Hugging Face folder."""

from __future__ import annotations

from dataclasses import dataclass

from services.launcher.bad_model_file import BadModelFile
from services.launcher.dequantize import Half, dequantize
from services.launcher.gguf import Gguf
from services.launcher.llama_config import LlamaConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class LlamaTensor:
    """A tensor of the folder; `permuted_heads` is the number of heads whose rows are permuted."""

    name: str
    source: str
    shape: tuple[int, ...]
    permuted_heads: int | None = None

    def read(self, gguf: Gguf) -> Half:
        """The values, rows in the order of Hugging Face."""
        stored = gguf.tensors[self.source]
        values = dequantize(stored, gguf.bytes_of(stored))
        return values if self.permuted_heads is None else unpermuted(values, self.permuted_heads)


def unpermuted(rows: Half, heads: int) -> Half:
    """Rows of q or k with the two halves of each head one after the other again.

    llama.cpp's conversion interleaves the halves (0, half, 1, half + 1, …) since its rotary
    embedding turns neighbours, where Hugging Face's turns row i with row i + half.
    """
    return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def llama_tensors(gguf: Gguf, config: LlamaConfig) -> list[LlamaTensor]:
    """All tensors of the model, each of them in the file with the shape that the sizes ask for.

    Raises:
        BadModelFile: a tensor is missing, unknown or of another shape.
    """
    wanted = [
        *_outer_tensors(config),
        *(tensor for layer in range(config.layers) for tensor in _layer_tensors(config, layer)),
    ]
    for tensor in wanted:
        if tensor.source not in gguf.tensors:
            raise BadModelFile(f"tensor {tensor.source!r} is missing")
        shape = gguf.tensors[tensor.source].shape
        if shape != tensor.shape:
            raise BadModelFile(
                f"tensor {tensor.source!r} must have the shape {tensor.shape}, has {shape}"
            )
    unknown = gguf.tensors.keys() - {tensor.source for tensor in wanted}
    if unknown:
        raise BadModelFile(f"tensor {min(unknown)!r} has no place in a Llama model")
    return wanted


def _outer_tensors(config: LlamaConfig) -> list[LlamaTensor]:
    table = (config.vocab, config.hidden)
    outer = [
        LlamaTensor(name="model.embed_tokens.weight", source="token_embd.weight", shape=table),
        LlamaTensor(name="model.norm.weight", source="output_norm.weight", shape=(config.hidden,)),
    ]
    if not config.tied:
        outer.append(LlamaTensor(name="lm_head.weight", source="output.weight", shape=table))
    return outer


def _layer_tensors(config: LlamaConfig, layer: int) -> list[LlamaTensor]:
    hidden, feed_forward = config.hidden, config.feed_forward
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim

    def tensor(source: str, name: str, *shape: int, heads: int | None = None) -> LlamaTensor:
        return LlamaTensor(
            name=f"model.layers.{layer}.{name}.weight",
            source=f"blk.{layer}.{source}.weight",
            shape=shape,
            permuted_heads=heads,
        )

    return [
        tensor("attn_norm", "input_layernorm", hidden),
        tensor("attn_q", "self_attn.q_proj", queries, hidden, heads=config.heads),
        tensor("attn_k", "self_attn.k_proj", keys, hidden, heads=config.kv_heads),
        tensor("attn_v", "self_attn.v_proj", keys, hidden),
        tensor("attn_output", "self_attn.o_proj", hidden, queries),
        tensor("ffn_norm", "post_attention_layernorm", hidden),
        tensor("ffn_gate", "mlp.gate_proj", feed_forward, hidden),
        tensor("ffn_up", "mlp.up_proj", feed_forward, hidden),
        tensor("ffn_down", "mlp.down_proj", hidden, feed_forward),
    ]
