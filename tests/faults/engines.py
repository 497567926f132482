"""Settings of the engines that faults happen to, and of the router before them."""

from __future__ import annotations

from services.shared.model_folder import ModelFolder
from tests.integration.stack import Settings, simulated

TOGETHER = {"batching": {"max_wait_ms": 500, "token_budget": 4096}}
"""An engine begins all that is asked of it in one step."""

_FORGIVING = {"ejection_threshold": 1000}

WATCHFUL: Settings = {"health": {"degraded_after_s": 1.5, "stuck_after_s": 1.5, **_FORGIVING}}
"""A router waits no longer than it must for an engine that stands still, and bears no grudge."""

PATIENT: Settings = {"health": {"degraded_after_s": 60, "stuck_after_s": 60, **_FORGIVING}}
"""For engines that compute all prompts in one step, on a machine that is busy with more."""


HASTY: Settings = {"queue": {"wait_for_replica_s": 1}}
"""A router that soon tells callers that no replica comes."""


def slow(model: ModelFolder, step_ms: int) -> Settings:
    """An engine that computes nothing, in steps that a client can follow."""
    simulation = {"step_us": 1000 * step_ms, "token_us": 5}
    return {**simulated(model, simulation=simulation), "service": TOGETHER}


def real(model: ModelFolder) -> Settings:
    """An engine that computes on one thread."""
    memory = {"kv_cache_bytes": "64MiB"}
    executor = {"model_path": str(model.path), "threads": 1, "memory": memory}
    return {"executor": {**executor, "context_length": 1024}, "service": TOGETHER}
