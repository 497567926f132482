"""A fault after token 0, 1, 2, … of a generation, to one engine after the other.

usage: python -m tests.faults.matrix [--fault NAME] [--simulate] [--model FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from services.shared.model_folder import ModelFolder
from tests.faults.asked import TOKENS
from tests.faults.cluster import Cluster, cluster_of
from tests.faults.engines import PATIENT, WATCHFUL, real, slow
from tests.faults.fault import FAULTS
from tests.faults.proxy import proxy_to
from tests.faults.trial import Fault, Heard, trial_on
from tests.integration.stack import Launcher

UNNOTICED = 15
"""Tokens that may come before the router has heard of a fault."""

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")


async def disturbed_after(cluster: Cluster, after: Iterable[int], fault: Fault) -> None:
    """One engine after the other has the fault; all answers must be the undisturbed ones."""
    trial = await trial_on(cluster)
    for tokens in after:
        heard = await trial.disturbed(tokens, fault)
        continued = went_on(heard, tokens + UNNOTICED)
        sys.stdout.write(f"token {tokens}: {len(heard)} answers exact, {continued} continued\n")
        sys.stdout.flush()
        await cluster.revive()


def went_on(heard: Sequence[Heard], tokens: int) -> int:
    """How many answers went on elsewhere: at least all that are longer than so many tokens."""
    for one in heard:
        assert one.continued or one.tokens <= tokens, one
    return sum(one.continued for one in heard)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.matrix", description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, default="kill")
    parser.add_argument("--simulate", action="store_true", help="engines that compute nothing")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    options = parser.parse_args()
    model = ModelFolder(options.model)
    engine, router = real(model), PATIENT
    if options.simulate:
        engine, router = slow(model, step_ms=40), WATCHFUL
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(folder=Path(folder), environ={})
        with cluster_of(launcher, [engine] * 2, model, proxy_to, service=router) as cluster:
            asyncio.run(disturbed_after(cluster, range(TOKENS + 1), FAULTS[options.fault]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
