"""An engine that is killed in the middle of its answers: they go on elsewhere, token by token."""

from __future__ import annotations

from services.shared.model_folder import ModelFolder
from tests.faults.killing import killed_after, real, slow
from tests.integration.stack import Launcher


async def test_answers_do_not_show_when_their_engine_was_killed(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    await killed_after(launcher, slow(model_folder), model_folder, (0, 5, 10, 15, 20, 23, 24))


async def test_the_real_model_goes_on_in_another_process_as_if_nothing_had_happened(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    await killed_after(launcher, real(model_folder), model_folder, (7, 16))
