"""The stacks that clients are run against, each started when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from clients.client import Backend
from services.launcher.client_settings import Door
from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher, Stack, simulated, stack_of

SHORT_CONTEXT = 2048
LONG_CONTEXT = 200_000
OUTPUT_TOKENS = 64


class Backends:
    """Owns the stacks: leave it to end them.

    Args:
        model: the default model.
        folder: for settings and logs.
    """

    def __init__(self, model: ModelFolder, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._running = ExitStack()
        self._stacks: dict[Backend, Stack] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    def stack(self, backend: Backend) -> Stack:
        """The stack, ready."""
        if backend not in self._stacks:
            self._stacks[backend] = self._running.enter_context(self._start(backend))
        return self._stacks[backend]

    def _start(self, backend: Backend) -> Any:
        folder = self._folder / backend
        folder.mkdir(parents=True, exist_ok=True)
        settings, program = _ENGINES[backend](self._model)
        return stack_of(Launcher(folder=folder, environ={}), [settings], self._model, program)


def door(stack: Stack) -> Door:
    return Door(stack.url, stack.model)


def _real(model: ModelFolder) -> tuple[dict[str, Any], tuple[str, ...]]:
    """So short a context that an answer without end is at its end soon."""
    return {"executor": {"model_path": str(model.path), "context_length": SHORT_CONTEXT}}, ()


def _large(model: ModelFolder) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A long context, and steps so large and fast that a prompt of an agent takes no time."""
    simulation = {"step_us": 1000, "token_us": 1, "output_tokens": OUTPUT_TOKENS}
    settings = simulated(model, context_length=LONG_CONTEXT, simulation=simulation)
    return {**settings, "service": {"batching": {"token_budget": 8192}}}, ()


def _obedient(model: ModelFolder) -> tuple[dict[str, Any], tuple[str, ...]]:
    return {"executor": {"model_path": str(model.path)}}, ("-m", "clients.obedient_engine")


_ENGINES: dict[Backend, Callable[[ModelFolder], tuple[dict[str, Any], tuple[str, ...]]]] = {
    Backend.MODEL: _real,
    Backend.SIMULATED: _large,
    Backend.SCRIPTED: _obedient,
}
