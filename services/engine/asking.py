"""Questions from the event loop to the step loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from services.engine.loop import EngineLoop

Answer = TypeVar("Answer")


async def asked(loop: EngineLoop, question: Callable[[], Answer]) -> Answer:
    """What `question` returns or raises; the step loop calls it between two steps.

    It is called even if whoever asks is cancelled meanwhile.
    """
    home = asyncio.get_running_loop()
    told: asyncio.Future[Answer] = home.create_future()

    def tell(answer: Answer) -> None:
        if not told.done():
            told.set_result(answer)

    def fail(error: Exception) -> None:
        if not told.done():
            told.set_exception(error)

    def ask() -> None:
        try:
            answer = question()
        except Exception as error:  # noqa: BLE001  # raised to who asked
            home.call_soon_threadsafe(fail, error)
        else:
            home.call_soon_threadsafe(tell, answer)

    loop.command(ask)
    return await told
