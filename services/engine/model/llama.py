"""The Llama model: token IDs and kept keys and values to logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from services.engine.model.batch import Chunk
from services.engine.model.config import ModelConfig, read_config
from services.engine.model.kv_pool import KvPool, kv_bytes_per_block
from services.engine.model.layout import Layout
from services.engine.model.linear import Linear, linear
from services.engine.model.steps import begin_step
from services.engine.model.weights import EMBEDDING, FINAL_NORM, LM_HEAD, read_weights
from services.shared.model_folder import ModelFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """One layer's weights. `output_norm` is the norm that comes after it."""

    qkv: Linear
    out: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear
    output_norm: torch.Tensor


class LlamaModel:
    """A model in memory. One thread at a time may use it."""

    def __init__(
        self, config: ModelConfig, weights: dict[str, torch.Tensor], device: torch.device
    ) -> None:
        self.config = config
        self.device = device
        # What stays is copied: the file is mapped, and may be replaced while the engine runs.
        source = weights[EMBEDDING].dtype
        self.dtype = torch.float32 if device.type == "cpu" else source
        half = torch.float16 if source == torch.float32 else source
        self._embedding = weights[EMBEDDING].to(device, half, copy=True)
        self._first_norm = self._norm(weights, "model.layers.0.input_layernorm.weight")
        self.layers = [self._layer(weights, index) for index in range(config.layers)]
        self.lm_head = linear(weights.get(LM_HEAD, weights[EMBEDDING]), device)
        self._begin = begin_step(config, device)

    @classmethod
    def load(cls, folder: ModelFolder, *, device: torch.device) -> LlamaModel:
        """Reads and checks the folder; raises `BadModelFolder` naming the file at fault."""
        folder.verify()
        config = read_config(folder)
        return cls(config, read_weights(folder, config), device)

    def kv_bytes_per_block(self, block_size: int) -> int:
        return kv_bytes_per_block(self.config, block_size, self.dtype)

    def allocate(self, blocks: int, block_size: int) -> KvPool:
        return KvPool(
            self.config, blocks, block_size, torch.empty(0, dtype=self.dtype, device=self.device)
        )

    @torch.inference_mode()
    def forward(self, chunks: Sequence[Chunk], pool: KvPool) -> torch.Tensor:
        """Computes one step and keeps its keys and values in `pool`.

        Returns:
            Logits [n, vocabulary_size], fp32, of the last row of each of the n chunks that want
            them, in their order.
        """
        layout = Layout.of(chunks, pool.block_size)
        step = self._begin(self._embedded(layout), layout, pool)
        normed = step.norm(self._first_norm)
        for index, layer in enumerate(self.layers):
            attended = step.attend(layer.qkv(normed), index)
            normed = step.add_norm(layer.out(attended), layer.mlp_norm)
            activated = step.silu_up(layer.gate_up(normed))
            normed = step.add_norm(layer.down(activated), layer.output_norm)
        if not layout.wanting:
            return normed.new_empty((0, self.config.vocabulary_size), dtype=torch.float32)
        return self.lm_head(normed[list(layout.wanting)]).float()

    def warm_up(self, pool: KvPool) -> None:
        """Runs each path once, in blocks whose content does not matter yet."""
        for rows, sequences in ((1, 1), (pool.block_size, 1), (pool.block_size, 4)):
            chunk = Chunk([0] * rows, 0, [0], wants_logits=True)
            self.forward([chunk] * sequences, pool)

    def _embedded(self, layout: Layout) -> torch.Tensor:
        token_ids = torch.from_numpy(layout.token_ids).to(self.device)
        return torch.embedding(self._embedding, token_ids).to(self.dtype)

    def _norm(self, weights: dict[str, torch.Tensor], name: str) -> torch.Tensor:
        return weights[name].to(self.device, self.dtype, copy=True)

    def _layer(self, weights: dict[str, torch.Tensor], index: int) -> Layer:
        prefix = f"model.layers.{index}"
        after = f"model.layers.{index + 1}.input_layernorm.weight"

        def fused(*names: str) -> Linear:
            parts = [weights.pop(f"{prefix}.{name}.weight") for name in names]
            return linear(torch.cat(parts), self.device)

        return Layer(
            qkv=fused("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            out=fused("self_attn.o_proj"),
            mlp_norm=self._norm(weights, f"{prefix}.post_attention_layernorm.weight"),
            gate_up=fused("mlp.gate_proj", "mlp.up_proj"),
            down=fused("mlp.down_proj"),
            output_norm=self._norm(weights, after if after in weights else FINAL_NORM),
        )
