"""Engines killed after token 0, 1, 2, … of a generation, one after the other.

usage: python -m tests.faults.killing [--simulate] [--model FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from services.shared.model_folder import ModelFolder
from tests.faults.asked import TOKENS
from tests.faults.cluster import Cluster, cluster_of
from tests.faults.fault import kill
from tests.faults.trial import TOGETHER, Fault, Heard, trial_on
from tests.integration.stack import Launcher, Settings, simulated

ON_ITS_WAY = 4
"""Tokens that may be computed beyond what a client has heard when its engine dies."""

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")


def slow(model: ModelFolder, step_ms: int = 20) -> Settings:
    """An engine that computes nothing, in steps that a client can follow."""
    simulation = {"step_us": 1000 * step_ms, "token_us": 5}
    return {**simulated(model, simulation=simulation), "service": TOGETHER}


def real(model: ModelFolder) -> Settings:
    """An engine that computes on one thread."""
    memory = {"kv_cache_bytes": "64MiB"}
    executor = {"model_path": str(model.path), "threads": 1, "memory": memory}
    return {"executor": {**executor, "context_length": 1024}, "service": TOGETHER}


async def disturbed_after(
    cluster: Cluster, after: Iterable[int], fault: Fault, say: Callable[[str], None]
) -> None:
    """One engine after the other has the fault; all answers must be the undisturbed ones."""
    trial = await trial_on(cluster)
    for tokens in after:
        heard = await trial.disturbed(tokens, fault)
        continued = went_on(heard, tokens + ON_ITS_WAY)
        say(f"token {tokens}: {len(heard)} answers as undisturbed, {continued} continued")
        await cluster.revive()


def went_on(heard: Sequence[Heard], tokens: int) -> int:
    """How many answers went on elsewhere: at least all that are longer than so many tokens."""
    for one in heard:
        assert one.continued or one.tokens <= tokens, one
    return sum(one.continued for one in heard)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.killing", description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="engines that compute nothing")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    options = parser.parse_args()
    model = ModelFolder(options.model)
    engine = slow(model) if options.simulate else real(model)
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(folder=Path(folder), environ={})
        with cluster_of(launcher, [engine, engine], model) as cluster:
            asyncio.run(disturbed_after(cluster, range(TOKENS + 1), kill, _say))
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
