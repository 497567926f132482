"""An engine that recites is killed in the middle of its text, and the text is whole."""

from __future__ import annotations

import httpx

from clients.continuation import PROGRAM, reciting
from clients.killing import killing
from clients.reciting_engine import TEXT
from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, Launcher, stack_of


def test_a_text_is_told_whole_by_two_engines_of_which_one_is_killed(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    with stack_of(launcher, [reciting(model_folder)] * 2, model_folder, PROGRAM) as stack:
        with killing(stack) as killer:
            body = stack.chat("Recite.", max_tokens=30_000)
            url = f"{stack.url}/v1/chat/completions"
            answer = httpx.post(url, json=body, timeout=PATIENCE_S).json()
        assert answer["choices"][0]["message"]["content"] == TEXT
        assert killer.killed
        assert sum(engine.process.poll() is not None for engine in stack.engines) == 1
        (ended,) = stack.router.lines(message="generation ended")
        assert ended["attempts"] == 2
