"""The part of a model folder's config.json that decides the computation."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from services.engine.model.config_keys import ConfigKeys
from services.shared.model_folder import CONFIG, ModelFolder

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

DEFAULT_ROPE_THETA = 10000.0

# Switches whose other values are computations that are not built here.
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
    keys = ConfigKeys(str(folder.path / CONFIG), folder.json(CONFIG))
    _demand_architecture(keys)

    def size(key: str, default: int | None = None) -> int:
        return keys.size(key, LIMITS[key], default)

    heads, hidden_size = size("num_attention_heads"), size("hidden_size")
    config = ModelConfig(
        vocabulary_size=size("vocab_size"),
        hidden_size=hidden_size,
        intermediate_size=size("intermediate_size"),
        layers=size("num_hidden_layers"),
        heads=heads,
        kv_heads=size("num_key_value_heads", heads),
        head_dim=size("head_dim", hidden_size // heads),
        context_length=size("max_position_embeddings"),
        rms_eps=keys.positive("rms_norm_eps"),
        rope_theta=_rope_theta(keys),
        rope_scaling=_rope_scaling(keys),
        tied_embeddings=keys.flag("tie_word_embeddings"),
        eos_ids=_eos_ids(keys),
    )
    if config.heads % config.kv_heads:
        raise keys.wrong("num_attention_heads", f"a multiple of {config.kv_heads}")
    if config.head_dim % 2:
        raise keys.wrong("head_dim", "even")
    return config


def _demand_architecture(keys: ConfigKeys) -> None:
    if keys.values.get("architectures") != [ARCHITECTURE]:
        raise keys.wrong("architectures", f"[{ARCHITECTURE!r}]")
    if "auto_map" in keys.values:
        logger.warning("%s: auto_map is ignored, no code of a model folder runs", keys.where)
    for key, neutral in NEUTRAL.items():
        if keys.values.get(key, neutral) != neutral:
            raise keys.wrong(key, repr(neutral))


def _eos_ids(keys: ConfigKeys) -> tuple[int, ...]:
    value = keys.values.get("eos_token_id")
    ids = [] if value is None else value if isinstance(value, list) else [value]
    limit = keys.size("vocab_size", LIMITS["vocab_size"])
    for token_id in ids:
        if not isinstance(token_id, int) or not 0 <= token_id < limit:
            raise keys.wrong("eos_token_id", f"one or more token IDs below {limit}")
    return tuple(ids)


def _rope_keys(keys: ConfigKeys) -> ConfigKeys:
    """Transformers 5 writes rope_parameters with all in it, earlier ones rope_scaling."""
    parameters = keys.section("rope_parameters")
    return parameters if parameters.values else keys.section("rope_scaling")


def _rope_theta(keys: ConfigKeys) -> float:
    for section in (_rope_keys(keys), keys):
        if "rope_theta" in section.values:
            return section.positive("rope_theta")
    return DEFAULT_ROPE_THETA


def _rope_scaling(keys: ConfigKeys) -> RopeScaling | None:
    scaling = _rope_keys(keys)
    kind = scaling.values.get("rope_type", scaling.values.get("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise scaling.wrong("rope_type", "default or llama3")
    return RopeScaling(
        factor=scaling.positive("factor"),
        low_freq_factor=scaling.positive("low_freq_factor"),
        high_freq_factor=scaling.positive("high_freq_factor"),
        original_context_length=int(scaling.positive("original_max_position_embeddings")),
    )
