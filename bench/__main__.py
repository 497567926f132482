"""Runs all benchmarks one after the other and repeats their ratios at the end."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from bench.ratio import ratios
from bench.service_process import ROOT

MODULES = (
    "engine_step",
    "grammar",
    "http_throughput",
    "codec_prompt",
    "codec_stream",
    "router_session",
    "fleet_size",
    "scheduling",
    "prefix_index",
    "affinity",
    "fairness",
    "long_prompt",
    "kv_stores",
    "kv_transfer",
    "kv_reuse",
    "fetch_gaps",
    "separation",
    "prefill_hop",
    "spinning",
    "overload",
    "quotas",
    "trust_cost",
)


def verdict(output: str) -> list[str]:
    """The lines of a benchmark's output that tell its result: its ratios, else its last line."""
    return [str(ratio) for ratio in ratios(output)] or output.strip().splitlines()[-1:]


def output_of(module: str) -> str:
    """Runs a benchmark, in a session of its own; what it prints is shown and returned."""
    command = [sys.executable, "-m", f"bench.{module}"]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environ, start_new_session=True
    ) as process:
        lines = []
        assert process.stdout is not None  # noqa: S101  # a pipe was asked for
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"bench.{module} ended with status {process.returncode}")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("modules", nargs="*", default=MODULES, help=", ".join(MODULES))
    options = parser.parse_args()
    summary = []
    for module in options.modules:
        print(f"-- bench.{module}, load average {os.getloadavg()[0]:.1f}", flush=True)
        summary += [f"{module}: {line}" for line in verdict(output_of(module))]
    print("-- summary")
    print("\n".join(summary))


if __name__ == "__main__":
    main()
