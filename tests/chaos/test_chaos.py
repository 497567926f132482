"""A short chaos run: no answer is wrong, and nothing is left behind."""

from __future__ import annotations

from services.shared.model_folder import ModelFolder
from tests.chaos.history import History, broken, figures
from tests.chaos.run import Chaos
from tests.chaos.setting import chaotic_cluster, simulating
from tests.integration.stack import Launcher

SECONDS = 15


async def test_nothing_that_breaks_in_a_short_run_makes_an_answer_wrong(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    history = History()
    with chaotic_cluster(launcher, model_folder, simulating(model_folder), 4) as cluster:
        await Chaos(cluster=cluster, history=history, seconds=SECONDS, clients=16, seed=3).run()
    table = "\n".join(figures(history.entries))
    assert broken(history.entries) == [], table
    assert any(entry.get("answers") for entry in history.entries), table
    assert "faults" in table
