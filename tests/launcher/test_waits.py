"""Only a long wait is shown."""

from __future__ import annotations

import asyncio
import io

import pytest
from rich.console import Console

from services.launcher import waits
from services.launcher.waits import Waits


@pytest.mark.parametrize("terminal", [True, False])
async def test_a_long_wait_is_shown_and_a_short_one_is_not(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "LONG_S", 0)
    seen = io.StringIO()
    console = Console(file=seen, force_terminal=terminal, width=80)
    with Waits(console) as shown:
        async with shown.wait("engine 0 gets ready"):
            async with asyncio.timeout(30):
                while "engine 0" not in seen.getvalue():  # noqa: ASYNC110 drawn by another thread
                    await asyncio.sleep(0.01)
        monkeypatch.setattr(waits, "LONG_S", 60)
        async with shown.wait("router starts"):
            await asyncio.sleep(0)
    assert "router" not in seen.getvalue()
    assert ("waiting: engine 0 gets ready" in seen.getvalue()) is not terminal
