"""Engines that die, stand still, leave or cannot be reached: no answer shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from services.shared.model_folder import ModelFolder
from tests.faults import fault
from tests.faults.asked import MESSAGES
from tests.faults.cluster import Cluster, cluster_of
from tests.faults.engines import PATIENT, WATCHFUL, real, slow
from tests.faults.matrix import UNNOTICED, went_on
from tests.faults.proxy import proxy_to
from tests.faults.trial import Fault, Heard, Trial, trial_on
from tests.integration.stack import Launcher
from tests.waiting import until

ON_ITS_WAY = 4
"""Tokens that may be computed beyond what a client has heard when its engine dies."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder) -> Iterator[Trial]:
    """Two engines that compute nothing, a way to each that can be cut, and a watchful router."""
    launcher = Launcher(folder=tmp_path_factory.mktemp("faults"), environ={})
    engines = [slow(model_folder, step_ms=40)] * 2
    with cluster_of(launcher, engines, model_folder, proxy_to, service=WATCHFUL) as cluster:
        yield asyncio.run(trial_on(cluster))


@pytest.mark.parametrize("tokens", [0, 1, 12, 23, 24])
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


async def test_a_router_that_is_killed_leaves_clean_errors_and_no_wrong_answer(
    trial: Trial,
) -> None:
    heard = await trial.heard(8, fault.kill_router)
    for one in heard:
        assert not one.answer.complete
        assert said_in_its_words(one)
    await trial.cluster.revive()
    await until(lambda: at_rest(trial.cluster))
    await trial.disturbed(24, fault.none)


async def test_the_only_engine_goes_on_with_its_answers_when_it_is_back(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    with cluster_of(launcher, [slow(model_folder, step_ms=20)], model_folder) as cluster:
        trial = await trial_on(cluster)
        went_on(await trial.disturbed(9, fault.restart), 9 + ON_ITS_WAY)


def said_in_its_words(heard: Heard) -> bool:
    """Whether an answer that broke off says so as its protocol does, and as worth another try."""
    answer = heard.answer
    if heard.asked.streamed:
        error = answer.told[""][-1]["error"]
    else:
        assert answer.status == 503
        error = answer.told["error"]
    kind = "api_error" if heard.asked.path == MESSAGES else "server_error"
    return bool(error["type"] == kind and error["message"] and "127.0.0.1" not in error["message"])


@pytest.mark.timeout(600)  # on a machine that is busy with more than this
async def test_the_real_model_goes_on_in_another_process_as_if_nothing_had_happened(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    engines = [real(model_folder)] * 2
    with cluster_of(launcher, engines, model_folder, service=PATIENT) as cluster:
        went_on(await (await trial_on(cluster)).disturbed(9, fault.kill), 9 + ON_ITS_WAY)


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
