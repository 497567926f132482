"""Replicas and generations as the balancer's tests put them."""

from __future__ import annotations

from typing import Any

from services.router.balancing.candidate import Candidate, Snapshot
from services.router.demand import Demand, Lane
from services.router.status import Status


def demand(prompt_tokens: int = 100, **changes: Any) -> Demand:
    values: dict[str, Any] = {"model": "", "output_tokens": 10, "lane": Lane.SHORT}
    return Demand(token_ids=range(prompt_tokens), **{**values, **changes})


def ready(name: str, **changes: Any) -> Candidate:
    return Candidate(name=name, **{"status": Status.READY, **changes})


def fleet(*candidates: Candidate, model: str | None = "m") -> Snapshot:
    return Snapshot(model=model, candidates=candidates)
