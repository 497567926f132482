"""Long-lived tasks: each has a parent and an end, and none dies unheard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

_log = logging.getLogger(__name__)


class Tasks:
    """Owns tasks that live until the block ends; then they are cancelled and awaited.

    Args:
        on_crash: told the name and the error of a task that ended by an error; the log has it too.
    """

    def __init__(self, on_crash: Callable[[str, Exception], None]) -> None:
        self._on_crash = on_crash
        self._running: set[asyncio.Task[None]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs `work`; cancelling the task that is given back ends it early."""
        task = asyncio.create_task(self._watched(name, work), name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been cancelled before it began
        return task

    async def _watched(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 the supervisor's own affair: log and tell
            _log.exception("task %s crashed", name)
            self._on_crash(name, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ending = list(self._running)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
