"""A cut ends what runs and keeps it from beginning again for its time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from services.router.connections.cuttable import Cuttable
from tests.waiting import until


class Session:
    def __init__(self, ends: Exception | None = None) -> None:
        self.begun = 0
        self.running = False
        self._ends = ends

    async def run(self) -> None:
        self.begun += 1
        if self._ends is not None:
            raise self._ends
        self.running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.running = False


async def test_what_is_cut_ends_and_begins_again_when_the_longest_cut_is_over() -> None:
    session = Session()
    cuttable = Cuttable(session.run)
    task = asyncio.create_task(cuttable.run())
    await until(lambda: session.running)
    began = asyncio.get_running_loop().time()
    cuttable.cut(0.2)
    await until(lambda: not session.running)
    cuttable.cut(0.1)
    await until(lambda: session.running)
    assert asyncio.get_running_loop().time() >= began + 0.2
    assert session.begun == 2
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert not session.running


async def test_a_cut_before_it_runs_keeps_it_from_beginning() -> None:
    session = Session()
    cuttable = Cuttable(session.run)
    cuttable.cut(0.1)
    task = asyncio.create_task(cuttable.run())
    await asyncio.sleep(0)
    assert session.begun == 0
    await until(lambda: session.running)
    task.cancel()


@pytest.mark.parametrize("error", [KeyError("a bug"), TimeoutError("its own")])
async def test_its_own_errors_are_not_taken_for_cuts(error: Exception) -> None:
    with pytest.raises(type(error)):
        await Cuttable(Session(error).run).run()
