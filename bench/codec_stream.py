"""CPU time of the codec for a streamed token at 64 streams, against a server that only writes.

A simulated engine gives each of 64 streams of Chat Completions a token every 20 ms. The CPU time of
the codec's process from the first request to the last answer is told for each token. The other side
is a plain asyncio server that writes the frames of one of these answers, one at a time, to as many
streams at the same pace. Neighbours on the machine only add to CPU time, by cold caches, so each
side's best round counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.ratio import Ratio
from bench.service_process import ROOT, ServiceProcess, service, service_process
from services.shared.settings import HealthSettings

STREAMS = 64
TOKENS = 200
PACE_S = 0.02
PROMPT = "Say something about rivers."
ENGINE = {
    "server": {"port": 0},
    "service": {"batching": {"max_batch_size": STREAMS, "token_budget": 64 * STREAMS}},
}
READY_S = 30


@dataclass(frozen=True, slots=True)
class Round:
    """What a round cost, and one of its answers."""

    cpu_s: float
    answer: str

    @property
    def token_us(self) -> float:
        return 1e6 * self.cpu_s / (STREAMS * TOKENS)


def body(model: str) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def streamed(client: httpx.AsyncClient, model: str) -> str:
    async with client.stream("POST", "/v1/chat/completions", json=body(model)) as answer:
        answer.raise_for_status()
        return (await answer.aread()).decode()


async def played(process: ServiceProcess, model: str) -> Round:
    """All streams at once, after one that warms up."""
    limits = httpx.Limits(max_connections=STREAMS)
    url = f"http://{process.doors['http']}"
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        await streamed(client, model)
        before = process.cpu_seconds()
        answers = await asyncio.gather(*(streamed(client, model) for _ in range(STREAMS)))
        return Round(process.cpu_seconds() - before, answers[0])


def wait_until_ready(process: ServiceProcess) -> None:
    url = f"http://{process.doors['http']}{HealthSettings().readiness_path}"
    give_up = time.monotonic() + READY_S
    while httpx.get(url).is_error:
        if time.monotonic() > give_up:
            raise RuntimeError(f"the codec is not ready after {READY_S} s")
        time.sleep(0.1)


def codec_round(process: ServiceProcess, model: str) -> Round:
    wait_until_ready(process)
    done = asyncio.run(played(process, model))
    *_, last, _ = frames_of(done.answer)
    usage = json.loads(last.removeprefix("data: "))["usage"]
    if usage["completion_tokens"] != TOKENS:
        raise RuntimeError(f"expected {TOKENS} tokens, got {usage}")
    return done


def frames_of(answer: str) -> list[str]:
    return [f"{frame}\n\n" for frame in answer.split("\n\n") if frame]


def measure_codec(folder: Path) -> Round:
    simulation = {"step_us": 1e6 * PACE_S, "token_us": 0}
    executor = {"model_path": str(folder)}
    simulated = {**executor, "simulate": True, "simulation": simulation}
    with service("services.engine", {**ENGINE, "executor": simulated}) as engine:
        settings: Mapping[str, Any] = {
            "server": {"port": 0, "grpc_port": 0},
            "executor": executor,
            "inference_engine": {"endpoint": engine},
        }
        with service_process("services.codec", settings) as codec:
            return codec_round(codec, folder.name)


def measure_plain(answer: str) -> Round:
    settings = {"frames": frames_of(answer), "pace_s": PACE_S}
    with service_process("bench.plain_stream", settings) as plain:
        return asyncio.run(played(plain, ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    best: dict[str, float] = {}
    for _ in range(options.rounds):
        codec = measure_codec(options.model)
        sides = {"codec": codec, "plain": measure_plain(codec.answer)}
        for side, done in sides.items():
            best[side] = min(done.token_us, best.get(side, done.token_us))
            frames, load = len(frames_of(done.answer)), os.getloadavg()[0]
            print(
                f"{side}: {done.token_us:.1f} us of CPU a token at {STREAMS} streams, "
                f"{frames} frames of {TOKENS} tokens, load average {load:.1f}",
                flush=True,
            )
    print(Ratio(name="codec_cpu_a_token", value=best["codec"] / best["plain"]))


if __name__ == "__main__":
    main()
