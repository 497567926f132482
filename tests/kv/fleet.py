"""Engines with caches of each kind, as services that tests can kill."""

from __future__ import annotations

from typing import Any

from services.shared.model_folder import ModelFolder
from tests.integration.stack import Settings, simulated

LENIENT: Settings = {
    "read_timeout_s": 30,
    "peer": {"patience_s": 30},
    "distributed": {"timeout_s": 10},
}
"""Times that are long on a machine that is busy with more, for tests of what comes."""


def cached(engine: Settings, **cache: Any) -> Settings:
    """The engine with these settings of its caches."""
    return {**engine, "cache": cache}


def light(model: ModelFolder, blocks: int, **executor: Any) -> Settings:
    """An engine that computes nothing, with a pool of so many blocks."""
    return simulated(model, memory={"kv_cache_bytes": 16 * blocks}, **executor)


def real(model: ModelFolder, blocks: int, **executor: Any) -> Settings:
    """An engine that computes on one thread, with a pool of so many blocks."""
    memory = {"kv_cache_bytes": BLOCK_BYTES * blocks}
    own = {"model_path": str(model.path), "threads": 1, "context_length": 192, "memory": memory}
    return {"executor": {**own, **executor}}


BLOCK_BYTES = 16 * 30 * 3 * 64 * 2 * 4
"""16 tokens of SmolLM2: 30 layers, 3 heads of 64, keys and values in fp32."""
