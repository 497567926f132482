"""A client whose engine is killed in the middle of its answer: it must not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clients.client import Client
from clients.killing import killing
from clients.reciting_engine import TEXT
from clients.run import Run, Verdict
from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher, simulated, stack_of

CONTEXT = 200_000
PROGRAM = ("-m", "clients.reciting_engine")


def continuation(client: Client, model: ModelFolder, folder: Path) -> Verdict:
    """Asks once undisturbed and once with a kill; the second must be as the first.

    Args:
        client: installed.
        model: of the codec.
        folder: for settings and logs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    launcher = Launcher(folder=folder, environ={})
    with stack_of(launcher, [reciting(model)] * 2, model, PROGRAM) as stack:
        run = Run(client=client, stack=stack, call=None)
        undisturbed = _Asking(run)
        verdict = undisturbed.verdict()
        if verdict.fault is None:
            disturbed = _Asking(run)
            with killing(stack) as killer:
                verdict = disturbed.verdict()
            if not killer.killed:
                return Verdict("its answer was over before its engine was killed")
            if verdict.fault is None:
                fault = disturbed.fault(undisturbed)
                verdict = Verdict(fault, verdict.prompt_tokens)
    return verdict


class _Asking:
    """One question, and what the services wrote of it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = len(self._lines())
        self._ended_before = len(self._ended())
        self.requests = 0

    def verdict(self) -> Verdict:
        """The whole text must be told."""
        verdict = self._run.verdict()
        self.requests = len(self._lines()) - self._before
        said = self._run.said()
        if verdict.fault is None and TEXT not in " ".join(said.split()):
            return Verdict(f"not the whole text: {said[-300:]}", verdict.prompt_tokens)
        return verdict

    def fault(self, undisturbed: _Asking) -> str | None:
        if max(line["attempts"] for line in self._ended()[self._ended_before :]) < 2:
            return "no answer was continued"
        if self.requests != undisturbed.requests:
            return f"it asked {self.requests} times, undisturbed {undisturbed.requests} times"
        return None

    def _lines(self) -> list[dict[str, Any]]:
        return self._run.stack.codec.lines(message="request", path=self._run.client.protocol)

    def _ended(self) -> list[dict[str, Any]]:
        return self._run.stack.router.lines(message="generation ended")


def reciting(model: ModelFolder) -> dict[str, Any]:
    """Steps that take a prompt of an agent at once, and long enough to be killed between two."""
    simulation = {"step_us": 30_000, "token_us": 0, "output_tokens": 1}
    settings = simulated(model, context_length=CONTEXT, simulation=simulation)
    return {**settings, "service": {"batching": {"token_budget": 32_768}}}
