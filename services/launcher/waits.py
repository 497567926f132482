"""Shows what is waited for, once a wait has become long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

LONG_S = 2.0


class Waits:
    """One line with a spinner and a clock for each wait over two seconds; gone when it is over.

    Where the console is no terminal, such a wait is told once, as a plain line.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @asynccontextmanager
    async def wait(self, text: str) -> AsyncIterator[None]:
        line = self._progress.add_task(text, total=None, visible=False)

        def show() -> None:
            self._progress.update(line, visible=True)
            if not self._console.is_terminal:
                self._console.print(f"waiting: {text}")

        timer = asyncio.get_running_loop().call_later(LONG_S, show)
        try:
            yield
        finally:
            timer.cancel()
            self._progress.remove_task(line)
