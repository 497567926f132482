"""The services of a chaos run."""

from __future__ import annotations

from contextlib import AbstractContextManager

from services.shared.model_folder import ModelFolder
from tests.faults.cluster import Cluster, cluster_of
from tests.faults.proxy import proxy_to
from tests.integration.stack import Launcher, Settings, simulated

POOL_TOKENS = 6144
"""Little more than one of the largest requests with all its choices: sequences give way."""

HEALTH = {"degraded_after_s": 1.5, "stuck_after_s": 2.0, "max_ejection_s": 10}


def simulating(model: ModelFolder) -> Settings:
    """An engine that computes nothing, with a small pool."""
    memory = {"kv_cache_bytes": POOL_TOKENS}
    simulation = {"step_us": 20_000, "token_us": 5}
    return simulated(model, simulation=simulation, memory=memory)


def computing(model: ModelFolder) -> Settings:
    memory = {"kv_cache_bytes": "128MiB"}
    executor = {"model_path": str(model.path), "threads": 1, "memory": memory}
    return {"executor": {**executor, "context_length": 2048}}


def chaotic_cluster(
    launcher: Launcher, model: ModelFolder, engine: Settings, count: int
) -> AbstractContextManager[Cluster]:
    """Engines, each behind a link that can be cut, and a router that judges fast."""
    brief = {"service": {"limits": {"drain_timeout_s": 2}}}
    engines = [{**engine, **brief}] * count
    return cluster_of(launcher, engines, model, proxy_to, service={"health": HEALTH})
