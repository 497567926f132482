"""Who is late, and who only was not looked at."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from services.shared.access.shared_quotas.patience import within
from tests.waiting import PATIENCE_S


async def test_what_takes_longer_is_cancelled() -> None:
    is_cancelled = False

    async def hang() -> None:
        nonlocal is_cancelled
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled = True

    with pytest.raises(TimeoutError):
        await within(0.01, hang())
    assert is_cancelled


async def test_what_fails_in_time_fails() -> None:
    async def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await within(PATIENCE_S, fail())


async def test_a_loop_that_stood_still_does_not_blame_who_answered_meanwhile() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        loop = asyncio.get_running_loop()
        asked = asyncio.ensure_future(within(0.01, loop.sock_recv(near, 1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        far.send(b"x")
        time.sleep(0.05)  # noqa: ASYNC251  this is what is tried: nothing runs for so long
        assert await asked == b"x"
