"""The part of a model folder's config.json that decides the computation."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

from services.shared.model_folder import CONFIG, BadModelFolder, ModelFolder

logger = logging.getLogger(__name__)

ARCHITECTURE = "LlamaForCausalLM"

# The largest value of each size, far above any model, far below what an allocation could not bear.
LIMITS = {
    "vocab_size": 2**20,
    "hidden_size": 2**15,
    "intermediate_size": 2**18,
    "num_hidden_layers": 2**9,
    "num_attention_heads": 2**9,
    "num_key_value_heads": 2**9,
    "head_dim": 2**10,
    "max_position_embeddings": 2**21,
}

# Switches that change the computation in a way that is not built here, with the value that does not.
NEUTRAL = {"attention_bias": False, "mlp_bias": False, "hidden_act": "silu"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RopeScaling:
    """Stretching of the rotary wavelengths as Llama 3.1 does it (`rope_type` llama3)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_length: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Shape of a Llama model. Sizes are in elements, lengths in tokens."""

    vocabulary_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context_length: int
    rms_eps: float
    rope_theta: float
    rope_scaling: RopeScaling | None
    tied_embeddings: bool
    eos_ids: tuple[int, ...]

    @property
    def query_size(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.heads // self.kv_heads


def read_config(folder: ModelFolder) -> ModelConfig:
    """Reads config.json; raises `BadModelFolder` naming the file, the key and what it must be."""
    keys = _Keys(str(folder.path / CONFIG), folder.json(CONFIG))
    keys.demand_architecture()
    heads, hidden_size = keys.size("num_attention_heads"), keys.size("hidden_size")
    config = ModelConfig(
        vocabulary_size=keys.size("vocab_size"),
        hidden_size=hidden_size,
        intermediate_size=keys.size("intermediate_size"),
        layers=keys.size("num_hidden_layers"),
        heads=heads,
        kv_heads=keys.size("num_key_value_heads", heads),
        head_dim=keys.size("head_dim", hidden_size // heads),
        context_length=keys.size("max_position_embeddings"),
        rms_eps=keys.positive("rms_norm_eps"),
        rope_theta=keys.rope_theta(),
        rope_scaling=keys.rope_scaling(),
        tied_embeddings=keys.flag("tie_word_embeddings"),
        eos_ids=keys.eos_ids(),
    )
    if config.heads % config.kv_heads:
        raise keys.wrong("num_attention_heads", f"a multiple of {config.kv_heads}")
    if config.head_dim % 2:
        raise keys.wrong("head_dim", "even")
    return config


class _Keys:
    """Typed access to the keys of one JSON object of the file."""

    def __init__(self, where: str, values: dict[str, Any]) -> None:
        self._where = where
        self._values = values

    def wrong(self, key: str, must: str) -> BadModelFolder:
        return BadModelFolder(f"{self._where}: {key} must be {must}, got {self._values.get(key)!r}")

    def size(self, key: str, default: int | None = None) -> int:
        value = self._values.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LIMITS[key]:
            raise self.wrong(key, f"an integer from 1 to {LIMITS[key]}")
        return value

    def positive(self, key: str) -> float:
        value = self._values.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong(key, "a number")
        if not (0 < value < math.inf):
            raise self.wrong(key, "positive and finite")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def demand_architecture(self) -> None:
        if self._values.get("architectures") != [ARCHITECTURE]:
            raise self.wrong("architectures", f"[{ARCHITECTURE!r}]")
        if "auto_map" in self._values:
            logger.warning("%s: auto_map is ignored, no code of a model folder runs", self._where)
        for key, neutral in NEUTRAL.items():
            if self._values.get(key, neutral) != neutral:
                raise self.wrong(key, repr(neutral))

    def eos_ids(self) -> tuple[int, ...]:
        value = self._values.get("eos_token_id")
        ids = [] if value is None else value if isinstance(value, list) else [value]
        limit = self.size("vocab_size")
        for token_id in ids:
            if not isinstance(token_id, int) or not 0 <= token_id < limit:
                raise self.wrong("eos_token_id", f"one or more token IDs below {limit}")
        return tuple(ids)

    def rope_theta(self) -> float:
        # transformers 5 writes it into rope_parameters, earlier ones beside it.
        nested = self._rope()
        return nested.positive("rope_theta") if "rope_theta" in nested._values else self._theta()

    def _theta(self) -> float:
        return self.positive("rope_theta") if "rope_theta" in self._values else 10000.0

    def rope_scaling(self) -> RopeScaling | None:
        scaling = self._rope()
        kind = scaling._values.get("rope_type", scaling._values.get("type", "default"))
        if kind == "default":
            return None
        if kind != "llama3":
            raise self.wrong("rope_scaling", "of rope_type default or llama3")
        return RopeScaling(
            factor=scaling.positive("factor"),
            low_freq_factor=scaling.positive("low_freq_factor"),
            high_freq_factor=scaling.positive("high_freq_factor"),
            original_context_length=int(scaling.positive("original_max_position_embeddings")),
        )

    def _rope(self) -> _Keys:
        for key in ("rope_parameters", "rope_scaling"):
            value = self._values.get(key)
            if isinstance(value, dict):
                return _Keys(f"{self._where}: {key}", value)
            if value is not None:
                raise self.wrong(key, "an object")
        return _Keys(self._where, {})
