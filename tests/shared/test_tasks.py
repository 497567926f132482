"""Long-lived tasks end with their block, and a crash is told."""

from __future__ import annotations

import asyncio
import logging

import pytest

from services.shared.tasks import Tasks


async def test_tasks_end_with_their_block_and_free_what_they_hold() -> None:
    freed = asyncio.Event()
    started = asyncio.Event()

    async def hold() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            freed.set()

    async with Tasks(lambda *_: None) as tasks:
        task = tasks.start("hold", hold())
        await started.wait()
    assert freed.is_set()
    assert task.cancelled()


async def test_a_crash_is_logged_and_told_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: asyncio.Queue[tuple[str, Exception]] = asyncio.Queue()
    error = KeyError("x")

    async def crash() -> None:
        raise error

    async with Tasks(lambda *crashed: told.put_nowait(crashed)) as tasks:
        other = tasks.start("other", asyncio.Event().wait())  # type: ignore[arg-type]  # ends never
        tasks.start("sessions", crash())
        assert await told.get() == ("sessions", error)
        assert not other.done()
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (logging.ERROR, "task sessions crashed")
    ]


async def test_a_task_can_be_ended_early_and_a_normal_end_is_no_crash() -> None:
    crashed: list[str] = []
    async with Tasks(lambda name, _: crashed.append(name)) as tasks:
        early = tasks.start("early", asyncio.Event().wait())  # type: ignore[arg-type]  # ends never
        await tasks.start("short", asyncio.sleep(0))
        early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early
    assert not crashed


async def test_a_task_that_is_cancelled_before_it_began_leaves_nothing_behind() -> None:
    begun = asyncio.Event()

    async def begin() -> None:
        begun.set()

    async with Tasks(lambda *_: None) as tasks:
        tasks.start("begin", begin()).cancel()
    assert not begun.is_set()
