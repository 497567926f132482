"""A prompt of 200 kB to token IDs: the codec against transformers' `apply_chat_template`.

The first turn has text that a side has not seen; the second is the same chat with an answer and a
question more, and the codec keeps the IDs of what it knows. Then the first turn runs in a worker
thread, as the codec does it, while the event loop is watched: the longest time that it could not
run is told over the time of the encoding. The chats have 41 messages, or a single one. Both sides
take the same chats and must give the same IDs; they take turns, each in a process of its own.
Neighbours on the machine only slow a side down, so its best round counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from bench.ratio import Ratio
from bench.service_process import ROOT
from services.codec.__main__ import SWITCH_INTERVAL_S
from services.codec.conversation import Conversation, Role, Text, Turn
from services.codec.prompt import PromptEncoder
from services.shared.model_folder import ModelFolder

CHARACTERS = 200_000
SIDES = ("codec", "transformers")
TURNS = 2
SHAPES = {"chat": 41, "message": 1}
AIMS = {"first": ">= 1", "second": ">= 50"}
CACHE_BYTES = 64 * 2**20
TICK_S = 0.001

Messages = list[dict[str, str]]
Encode = Callable[[Messages], list[int]]
Figures = tuple[dict[str, float], int]


class Prose:
    """Text of which no two paragraphs are the same, of the words of this project's own files."""

    def __init__(self) -> None:
        paths = sorted(path for kind in ("md", "py") for path in ROOT.glob(f"[bs]*/**/*.{kind}"))
        lines = [line for path in paths for line in path.read_text("utf-8").splitlines()]
        # Spelled control tokens are what the two sides do not agree on.
        self._lines = [line for line in lines if "<" not in line]
        self._draw = random.Random(0)  # noqa: S311  # no secret

    def __call__(self, characters: int) -> str:
        lines: list[str] = []
        while characters > 0:
            lines.append(self._draw.choice(self._lines))
            characters -= len(lines[-1]) + 1
        return "\n".join(lines)


def chat_of(prose: Prose, count: int) -> Messages:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": prose(CHARACTERS // count)} for at in range(count)]


def continued(chat: Messages) -> Messages:
    more = ({"role": "assistant", "content": "I see."}, {"role": "user", "content": "Go on."})
    return [*chat, *more]


def conversation(chat: Messages) -> Conversation:
    turns = (Turn(Role(said["role"]), (Text(said["content"]),)) for said in chat)
    return Conversation(tuple(turns))


def encode_of(side: str, folder: Path) -> Encode:
    """A side's way from messages to IDs."""
    if side == "codec":
        encoder = PromptEncoder(ModelFolder(folder), cache_bytes=CACHE_BYTES)
        return lambda chat: encoder.encode(conversation(chat))
    from transformers import AutoTokenizer  # noqa: PLC0415  # the codec's process must not load it

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def encode(chat: Messages) -> list[int]:
        ids: list[int] = tokenizer.apply_chat_template(
            chat, tokenize=True, add_generation_prompt=True, return_dict=False
        )
        return ids

    return encode


def timed(encode: Encode, chat: Messages) -> tuple[float, list[int]]:
    began = time.perf_counter()
    ids = encode(chat)
    return time.perf_counter() - began, ids


async def longest_stall(encode: Encode, chat: Messages) -> float:
    """How long the event loop could not run, over the time of the encoding in its thread."""
    encoding = asyncio.create_task(asyncio.to_thread(timed, encode, chat))
    longest, last = 0.0, time.perf_counter()
    while not encoding.done():
        await asyncio.sleep(TICK_S)
        now = time.perf_counter()
        longest, last = max(longest, now - last - TICK_S), now
    seconds, _ = await encoding
    return longest / seconds


def side_figures(encode: Encode, rounds: int) -> Figures:
    """The best figures of a side, in this process, and the digest of all its IDs."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    prose, digest = Prose(), 0
    best: dict[str, float] = {}
    for shape, count in SHAPES.items():
        for _ in range(rounds):
            chat = chat_of(prose, count)
            figures = {}
            for turn, said in (("first", chat), ("second", continued(chat))):
                figures[f"{shape}_{turn}_turn"], ids = timed(encode, said)
                digest = crc32(repr(ids).encode(), digest)
            stall = asyncio.run(longest_stall(encode, chat_of(prose, count)))
            figures[f"{shape}_stall"] = stall
            best |= {name: min(value, best.get(name, value)) for name, value in figures.items()}
    return best, digest


def measured(side: str, options: argparse.Namespace) -> Figures:
    """The same in a session of its own (setsid)."""
    command = [sys.executable, "-m", "bench.codec_prompt", "--side", side]
    command += ["--model", str(options.model), "--rounds", str(options.rounds)]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"}
    child = subprocess.run(
        command, stdout=subprocess.PIPE, env=environ, start_new_session=True, check=True
    )
    figures, digest = json.loads(child.stdout)
    return figures, digest


def compare(options: argparse.Namespace) -> None:
    best: dict[str, dict[str, float]] = {side: {} for side in SIDES}
    digests = set()
    for side in SIDES * TURNS:
        figures, digest = measured(side, options)
        digests.add(digest)
        known = best[side]
        known |= {name: min(value, known.get(name, value)) for name, value in figures.items()}
    if len(digests) > 1:
        raise RuntimeError("the sides do not give the same IDs")
    codec, transformers = (best[side] for side in SIDES)
    for name, value in codec.items():
        if name.endswith("_stall"):
            print(Ratio(name=f"codec_{name}", value=value))
            continue
        print(f"{name}: {1000 * value:.2f} ms, transformers {1000 * transformers[name]:.2f} ms")
        aim = AIMS[name.split("_")[1]]
        print(Ratio(name=f"codec_{name}", value=transformers[name] / value, aim=aim))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", choices=SIDES, help="measure one side in this process")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(side_figures(encode_of(options.side, options.model), options.rounds)))
        return
    compare(options)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
