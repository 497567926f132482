"""Breaks engines and connections at random for some minutes while clients ask.

usage: python -m tests.chaos [--minutes M] [--seed N] [--history FILE] [--real]
       python -m tests.chaos --judge FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from services.shared.model_folder import ModelFolder
from tests.chaos.history import History, broken, figures
from tests.chaos.run import Chaos
from tests.chaos.setting import chaotic_cluster, computing, simulating
from tests.integration.stack import Launcher

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")


def main() -> int:
    options = _options()
    if options.judge is not None:
        return _verdict([json.loads(line) for line in options.judge.read_text().splitlines()])
    # Told to end, it ends what it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.write(f"seed {options.seed}\n")
    history = History(options.history)
    model = ModelFolder(options.model)
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(folder=Path(folder), environ={})
        engine = computing(model) if options.real else simulating(model)
        with chaotic_cluster(launcher, model, engine, options.engines) as cluster:
            chaos = Chaos(
                cluster=cluster,
                history=history,
                seconds=60 * options.minutes,
                clients=options.clients,
                seed=options.seed,
            )
            asyncio.run(chaos.run())
    history.close()
    return _verdict(history.entries)


def _verdict(entries: Iterable[Mapping[str, Any]]) -> int:
    entries = list(entries)
    faults = broken(entries)
    sys.stdout.write("\n".join([*figures(entries), *(faults or ["nothing is broken"])]) + "\n")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="(10)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--engines", type=int, default=4, help="(4)")
    parser.add_argument("--clients", type=int, default=32, help="(32)")
    parser.add_argument("--history", type=Path, help="a file for all that happens")
    parser.add_argument("--judge", type=Path, help="judges a history again")
    parser.add_argument("--real", action="store_true", help="engines that compute")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
