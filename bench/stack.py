"""The whole way from HTTP to tokens as processes: engine, router and codec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.service_process import service

FREE_PORT = {"server": {"port": 0}}


@contextmanager
def stack(model: Path) -> Iterator[str]:
    """Runs all three on the real model with default settings; gives the codec's URL."""
    executor = {"model_path": str(model)}
    with (
        service("services.engine", {**FREE_PORT, "executor": executor}) as engine,
        service("services.router", {**FREE_PORT, "replicas": [engine]}) as router,
        service("services.codec", _codec(executor, router), door="http") as codec,
    ):
        yield f"http://{codec}"


def _codec(executor: Mapping[str, Any], router: str) -> Mapping[str, Any]:
    return {
        "server": {"port": 0, "grpc_port": 0},
        "executor": executor,
        "inference_engine": {"endpoint": router},
    }
