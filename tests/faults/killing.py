"""Engines killed after token 0, 1, 2, … of a generation, one after the other.

usage: python -m tests.faults.killing [--simulate] [--model FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from services.shared.model_folder import ModelFolder
from tests.faults.asked import TOKENS
from tests.faults.cluster import cluster_of
from tests.faults.mortal import Mortal
from tests.faults.trial import TOGETHER, trial_on
from tests.integration.stack import Launcher, Settings, simulated

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")


def slow(model: ModelFolder) -> Settings:
    """An engine that computes nothing, in steps that a client can follow."""
    simulation = {"step_us": 20_000, "token_us": 5}
    return {**simulated(model, simulation=simulation), "service": TOGETHER}


def real(model: ModelFolder) -> Settings:
    """An engine that computes on one thread."""
    memory = {"kv_cache_bytes": "64MiB"}
    executor = {"model_path": str(model.path), "threads": 1, "memory": memory}
    return {"executor": {**executor, "context_length": 1024}, "service": TOGETHER}


async def killed_after(
    launcher: Launcher,
    engine: Settings,
    model: ModelFolder,
    after: Iterable[int],
    say: Callable[[str], None] = lambda _: None,
) -> Counter[str]:
    """Kills an engine after each of these tokens; all answers must be the undisturbed ones.

    Gives how often each answer was continued elsewhere.
    """
    continued: Counter[str] = Counter()
    with cluster_of(launcher, [engine, engine], model) as cluster:
        async with trial_on(cluster) as trial:
            for tokens in after:
                heard = await trial.disturbed(tokens, Mortal.kill)
                names = [one.asked.name for one in heard if one.continued]
                # With its last token it may have ended before its engine did.
                assert tokens == TOKENS or heard[0].continued
                continued.update(names)
                say(f"token {tokens}: {len(heard)} answers as undisturbed, {len(names)} continued")
                await cluster.revive()
    return continued


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.killing", description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="engines that compute nothing")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    options = parser.parse_args()
    model = ModelFolder(options.model)
    engine = slow(model) if options.simulate else real(model)
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(folder=Path(folder), environ={})
        work = killed_after(launcher, engine, model, range(TOKENS + 1), _say)
        continued = asyncio.run(work)
    for name, times in sorted(continued.items()):
        _say(f"{name}: continued {times} times")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
