"""guidellm against an OpenAI-compatible server: output tokens a second at a number of streams."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.service_process import ROOT

GUIDELLM = ROOT / ".venv-bench/bin/guidellm"
ENVIRON = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "GUIDELLM__MAX_WORKER_PROCESSES": "1",  # more would take cores from what is measured
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Streams that begin at once, each request of so many tokens."""

    streams: int
    prompt_tokens: int = 128
    output_tokens: int = 128

    @property
    def requests(self) -> int:
        """One for each stream; more where one would be over before the load tool is awake."""
        return max(self.streams, 4)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A server. `tokenizer` is the folder whose tokens the prompts are counted in."""

    url: str
    model: str
    tokenizer: Path


def throughput(target: Target, shape: Shape) -> float:
    """Output tokens a second, greedy, from the first request to the last answer's end.

    Prompts are new in each call, so that no prefix cache knows them.

    Raises:
        RuntimeError: not every token came.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(GUIDELLM), "run", "--disable-console", *_options(target, shape, report)]
        subprocess.run(
            command, env={**os.environ, **ENVIRON}, cwd=folder, stdout=2, stderr=2, check=True
        )
        return rate_of(json.loads(report.read_text()), shape)


def rate_of(report: Mapping[str, Any], shape: Shape) -> float:
    """The rate in guidellm's report; raises RuntimeError where tokens are missing."""
    metrics = report["benchmarks"][0]["metrics"]
    count = metrics["output_token_count"]["successful"]["total_sum"]
    expected = shape.requests * shape.output_tokens
    if count != expected:
        raise RuntimeError(f"expected {expected} output tokens, got {count}")
    return float(metrics["output_tokens_per_second"]["successful"]["mean"])


def _options(target: Target, shape: Shape, report: Path) -> list[str]:
    options: dict[str, Mapping[str, Any]] = {
        "backend": {
            "kind": "openai_http",
            "target": target.url,
            "model": target.model,
            "request_format": "/v1/chat/completions",
            "validate_backend": False,  # it asks for /health, which not every server has
            "extras": {"body": {"temperature": 0}},
        },
        "profile": {"kind": "concurrent", "streams": shape.streams},
        "constraint": {"kind": "max_requests", "count": shape.requests},
        "tokenizer": {"kind": "huggingface_auto", "model": str(target.tokenizer)},
        "data": {
            "kind": "synthetic_text",
            "prompt_tokens": shape.prompt_tokens,
            "output_tokens": shape.output_tokens,
        },
        # Made before it begins: by default 4,096 more are made while the server is measured.
        "data-loader": {"kind": "pytorch", "samples": shape.requests, "prefetch_factor": 1},
        "seed": {"kind": "static", "value": secrets.randbelow(2**31)},
        "output": {"kind": "json", "path": str(report)},
    }
    return [part for name, value in options.items() for part in (f"--{name}", json.dumps(value))]
