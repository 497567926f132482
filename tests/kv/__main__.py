"""KV that moves, over real processes; this command breaks all that moves it for some minutes.

The tests of this folder run engines, routers and stores as processes, and show that answers are
the same whatever moved, that tenants stay apart, and that nothing that dies is missed. The command
does so at random: engines for prompts and for outputs and the nodes of a store are killed and
stopped, the cache is turned off and on and flushed, while clients ask and know what is right.

usage: python -m tests.kv [--minutes M] [--seed N] [--history FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.shared.model_folder import ModelFolder
from tests.chaos.history import History, broken, figures
from tests.chaos.run import Chaos
from tests.chaos.setting import HEALTH, simulating
from tests.faults.cluster import cluster_of
from tests.faults.proxy import proxy_to
from tests.integration.stack import Launcher
from tests.kv.books import stats_of
from tests.kv.fleet import cached
from tests.kv.store_nemesis import StoreNemesis
from tests.redis_server import RedisServer, redis_servers

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")
ROLES = ("prefill", "decode", "decode", "both")
ROUTER = {"health": HEALTH, "prefill": {"threshold_tokens": 48, "peer_tokens": 16}}


def main() -> int:
    options = _options()
    # Told to end, it ends what it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.write(f"seed {options.seed}\n")
    history = History(options.history)
    with tempfile.TemporaryDirectory() as folder, redis_servers(Path(folder), 6) as nodes:
        launcher = Launcher(folder=Path(folder), environ={})
        _run(options, launcher, nodes, history)
    history.close()
    faults = broken(history.entries)
    told = [*figures(history.entries), *(faults or ["nothing is broken"])]
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if faults else 0


def _run(
    options: argparse.Namespace,
    launcher: Launcher,
    nodes: Sequence[RedisServer],
    history: History,
) -> None:
    model = ModelFolder(options.model)
    cache = {
        "type": "distributed",
        "host_bytes": "64KiB",
        "distributed": {"nodes": [node.address for node in nodes], "spread": "erasure"},
        "peer": {"patience_s": 0.5},
        "read_timeout_s": 0.5,
    }
    plain = simulating(model)
    brief = {**plain, "service": {"limits": {"drain_timeout_s": 2}}}
    engines = [
        cached({**brief, "executor": {**plain["executor"], "role": role}}, **cache)
        for role in ROLES
    ]
    with cluster_of(launcher, engines, model, proxy_to, service=ROUTER) as cluster:
        chance = Random(f"{options.seed} store")  # noqa: S311 no secret
        nemesis = StoreNemesis(cluster, nodes, chance, history)
        chaos = Chaos(
            cluster=cluster,
            history=history,
            seconds=60 * options.minutes,
            clients=options.clients,
            seed=options.seed,
            besides=nemesis.run,
        )
        asyncio.run(chaos.run())
        stats = asyncio.run(stats_of(cluster.router.address))
        sys.stdout.write("".join(map(_line, stats.tiers)))


def _line(tier: pb.TierStats) -> str:
    """What a tier did in the engines' last lives."""
    name = pb.CacheTier.Name(tier.tier).removeprefix("CACHE_TIER_").lower()
    missed = ", ".join(
        f"{miss.blocks} {types.CacheMiss.Name(miss.cause).removeprefix('CACHE_MISS_').lower()}"
        for miss in tier.misses
    )
    return f"{name:10}{tier.hit_blocks:7} blocks found{f', not: {missed}' if missed else ''}\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kv", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="(10)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--clients", type=int, default=16, help="(16)")
    parser.add_argument("--history", type=Path, help="a file for all that happens")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
