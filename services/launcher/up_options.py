"""What `tokenway up` can be told, on the command line or in the environment."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")
DEFAULT_LOGS = Path(".tokenway/logs")
DEFAULT_KEYS = Path(".tokenway")


@dataclass(frozen=True, kw_only=True, slots=True)
class UpOptions:
    """The options; None where nothing was said, and then the service's file or default counts."""

    model: Path
    replicas: int = 1
    prefill: int = 0
    simulate: bool = False
    config_dir: Path | None = None
    log_dir: Path = DEFAULT_LOGS
    key_dir: Path = DEFAULT_KEYS
    drain_s: float = 30.0
    http_port: int | None = None
    grpc_port: int | None = None
    router_port: int | None = None
    engine_port: int | None = None
    metrics_port: int | None = None

    @property
    def engines(self) -> int:
        """All engines: those that decode, or do both, and then those that prefill for them."""
        return self.replicas + self.prefill


def up_options(argv: Sequence[str]) -> UpOptions:
    """Reads the command line of `tokenway up`; ends the program when it is wrong."""
    parser = argparse.ArgumentParser(
        prog="tokenway up", description="Starts engine, router and codec on 127.0.0.1."
    )
    parser.add_argument(
        "--model",
        type=Path,
        default=Path(_first("TOKENWAY_EXECUTOR__MODEL_PATH", "MODEL_PATH") or DEFAULT_MODEL),
        help=f"model folder (MODEL_PATH, or {DEFAULT_MODEL})",
    )
    parser.add_argument("--replicas", type=_count, default=1, help="engines (1)")
    parser.add_argument(
        "--prefill",
        type=_count_or_none,
        default=0,
        help="further engines that compute long prompts for the others (0)",
    )
    parser.add_argument("--simulate", action="store_true", help="engines that compute nothing")
    parser.add_argument(
        "--config-dir", type=Path, help="folder with engine.yaml, router.yaml, codec.yaml"
    )
    parser.add_argument("--log-dir", type=Path, default=DEFAULT_LOGS, help=f"({DEFAULT_LOGS})")
    parser.add_argument(
        "--key-dir",
        type=Path,
        default=DEFAULT_KEYS,
        help=f"where a key is made for callers on this machine ({DEFAULT_KEYS})",
    )
    parser.add_argument(
        "--drain-s", type=float, default=30.0, help="seconds for running answers to end (30)"
    )
    for door, words in (
        ("http", "of the codec's HTTP door (8080)"),
        ("grpc", "of the codec's gRPC door (8081)"),
        ("router", "of the router (9000)"),
        ("engine", "of the first engine; others count up (9100)"),
        ("metrics", "of the first engine's metrics; others count up (9400: the engine's and 300)"),
    ):
        variable = f"TOKENWAY_{door.upper()}_PORT"
        parser.add_argument(
            f"--{door}-port",
            type=_port,
            default=_first(variable),
            help=f"port {words}; also {variable}; 0 takes a free one",
        )
    return UpOptions(**vars(parser.parse_args(argv)))


def _first(*variables: str) -> str | None:
    """The environment's value of the first that is set."""
    return next((text for name in variables if (text := os.environ.get(name))), None)


def _count(text: str) -> int:
    return _between(1, 64, text)


def _count_or_none(text: str) -> int:
    return _between(0, 64, text)


def _port(text: str) -> int:
    return _between(0, 65535, text)


def _between(low: int, high: int, text: str) -> int:
    number = int(text)
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"must be between {low} and {high}, got {number}")
    return number
