"""One seed gives one world, byte for byte, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.faults.router import ClockJump
from tests.simulation.mixed_world import mixed_world
from tests.simulation.world import World

ROOT = Path(__file__).parents[2]


def history(seed: int, hash_seed: int, folder: Path) -> bytes:
    path = folder / f"{seed}-{hash_seed}.jsonl"
    subprocess.run(  # noqa: S603  # our own module
        [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--history", str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ".:stubs", "PYTHONHASHSEED": str(hash_seed)},
        check=True,
        capture_output=True,
    )
    return path.read_bytes()


@pytest.mark.parametrize("seed", [3, 22, 65])
def test_the_same_seed_gives_the_same_history(seed: int, tmp_path: Path) -> None:
    first = history(seed, 1, tmp_path)
    assert first.count(b"\n") > 50
    assert first == history(seed, 2, tmp_path)


def entries(seed: int, jumps: int) -> list[str]:
    world = World(mixed_world(seed), without=["clock jump"])
    jump = ClockJump(world, world.random("jumps"))
    for number in range(jumps):
        world.loop.call_later(number / 2, jump.strike)
    return list(world.run().history.lines())


@pytest.mark.parametrize("seed", [3, 22])
def test_a_wall_clock_that_jumps_changes_nothing(seed: int) -> None:
    assert entries(seed, jumps=20) == entries(seed, jumps=0)
