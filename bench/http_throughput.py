"""Output tokens a second of the whole stack over HTTP against transformers' `generate`.

Both sides have the same weights, threads and number of sequences, 128 tokens in, 128 out, greedy.
The stack's side is engine, router, codec and the load tool, guidellm; the other computes a batch in
fp32. The sides take turns, each in a session of its own. Both spin for work as long as the engine
does: with libgomp's default, a neighbour on the cores all but stops `generate`. Neighbours only
slow a side down, so its best round counts; the load average tells of them.

With `--target URL --model NAME` it measures any OpenAI-compatible server alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from bench.load_tool import Shape, Target, throughput
from bench.ratio import Ratio
from bench.service_process import ROOT
from bench.stack import stack
from bench.transformers_generate import generate_rate
from services.engine.threads import SPIN_COUNT

AIMS = {1: ">= 4", 8: ">= 4", 32: ">= 3"}
SIDES = ("stack", "generate")


def side_rate(side: str, folder: Path, shape: Shape) -> float:
    """Tokens a second of one side, in this process and its children."""
    if side == "generate":
        return generate_rate(folder, shape)
    with stack(folder) as url:
        return throughput(Target(url=url, model=folder.name, tokenizer=folder), shape)


def measured(side: str, folder: Path, streams: int) -> float:
    """Tokens a second of one side, in a session of its own (setsid)."""
    command = [sys.executable, "-m", "bench.http_throughput", "--side", side]
    command += ["--folder", str(folder), "--streams", str(streams)]
    environ = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}",
        "GOMP_SPINCOUNT": str(SPIN_COUNT),
    }
    child = subprocess.run(
        command, stdout=subprocess.PIPE, env=environ, start_new_session=True, check=True
    )
    rate = float(json.loads(child.stdout))
    load = os.getloadavg()[0]
    print(f"{side}: {rate:.1f} tokens/s at {streams} streams, load average {load:.1f}", flush=True)
    return rate


def compare(folder: Path, counts: list[int], rounds: int) -> None:
    for streams in counts:
        rates: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side, known in rates.items():
                known.append(measured(side, folder, streams))
        value = max(rates["stack"]) / max(rates["generate"])
        print(Ratio(name=f"http_{streams}", value=value, aim=AIMS.get(streams)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=list(AIMS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--target", help="URL of a server to measure alone")
    parser.add_argument("--model", help="what that server calls its model")
    parser.add_argument("--side", choices=SIDES, help="measure one side in this process")
    options = parser.parse_args()
    shapes = [Shape(streams=streams) for streams in options.streams]
    if options.side:
        print(json.dumps(side_rate(options.side, options.folder, shapes[0])))
    elif options.target:
        model = options.model or options.folder.name
        target = Target(url=options.target, model=model, tokenizer=options.folder)
        for shape in shapes:
            print(f"{throughput(target, shape):.1f} tokens/s at {shape.streams} streams")
    else:
        compare(options.folder, options.streams, options.rounds)


if __name__ == "__main__":
    main()
