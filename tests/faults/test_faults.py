"""Engines that die, stand still, leave or cannot be reached: no answer shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from services.shared.model_folder import ModelFolder
from tests.faults import fault
from tests.faults.cluster import Cluster, cluster_of
from tests.faults.killing import ON_ITS_WAY, disturbed_after, real, slow, went_on
from tests.faults.proxy import proxy_to
from tests.faults.trial import Fault, Trial, trial_on
from tests.integration.stack import Launcher
from tests.waiting import until

WATCHFUL = {"health": {"degraded_after_s": 1.5, "stuck_after_s": 1.5}}
UNNOTICED = 15
"""Tokens that may come before the router has heard of a fault that is only told."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder) -> Iterator[Trial]:
    """Two engines that compute nothing, a way to each that can be cut, and a watchful router."""
    launcher = Launcher(folder=tmp_path_factory.mktemp("faults"), environ={})
    engines = [slow(model_folder)] * 2
    with cluster_of(launcher, engines, model_folder, proxy_to, service=WATCHFUL) as cluster:
        yield asyncio.run(trial_on(cluster))


@pytest.mark.parametrize("tokens", [0, 1, 7, 13, 19, 23, 24])
async def test_answers_do_not_show_when_their_engine_was_killed(trial: Trial, tokens: int) -> None:
    went_on(await trial.disturbed(tokens, fault.kill), tokens + ON_ITS_WAY)
    await trial.cluster.revive()


@pytest.mark.parametrize(
    ("fault", "tokens"),
    [
        (fault.stop, 12),
        (fault.silence, 8),
        (fault.cut, 16),
        (fault.disconnect, 5),
        (fault.terminate, 3),
        (fault.drain, 2),
        (fault.drain_at_router, 1),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_answers_go_on_elsewhere_and_nothing_comes_late(
    trial: Trial, fault: Fault, tokens: int
) -> None:
    went_on(await trial.disturbed(tokens, fault), tokens + UNNOTICED)
    await trial.cluster.revive()
    await until(lambda: at_rest(trial.cluster))


async def test_the_real_model_goes_on_in_another_process_as_if_nothing_had_happened(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    engines = [real(model_folder)] * 2
    with cluster_of(launcher, engines, model_folder) as cluster:
        await disturbed_after(cluster, [9], fault.kill, print)


def at_rest(cluster: Cluster) -> bool:
    """Whether no engine holds anything for anybody."""
    loads = [engine.service.describe().load for engine in cluster.engines]
    return not any(
        load.running
        or load.waiting
        or load.outstanding_tokens
        or load.free_blocks + load.cached_blocks != load.total_blocks
        for load in loads
    )
