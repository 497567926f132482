"""The switch of the caches in the settings file, followed while the engine runs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from services.engine.kv.caches import Caches
from services.engine.settings import ALIASES, EngineSettings
from services.shared.access.followed_file import INTERVAL_S, FollowedFile
from services.shared.config import BadConfig, load
from services.shared.tasks import Tasks

_log = logging.getLogger(__name__)


def followed_switch(path: Path) -> FollowedFile[bool]:
    """What a file of engine settings says of `cache.enabled`. Raises BadConfig."""
    return FollowedFile(path, _enabled, (BadConfig,))


@asynccontextmanager
async def switched_by(file: FollowedFile[bool] | None, caches: Caches) -> AsyncIterator[None]:
    """Inside the block a new value in the file is set within a second or two.

    Whatever else sets the switch, it stays so until the value in the file changes. A file that
    cannot be used changes nothing. Other settings are those of the start.
    """
    async with Tasks(_crashed) as tasks:
        if file is not None:
            tasks.start("cache switch", _follow(file, caches))
        yield


async def _follow(file: FollowedFile[bool], caches: Caches) -> None:
    told = file.value
    while True:
        await asyncio.sleep(INTERVAL_S)
        await asyncio.to_thread(file.look)
        if file.value != told:
            told = file.value
            await caches.set(enabled=told)
            _log.info("the settings switch the caches", extra={"fields": {"enabled": told}})


def _enabled(path: Path) -> bool:
    return load(EngineSettings, path, os.environ, ALIASES).cache.enabled


def _crashed(_: str, __: Exception) -> None:
    """The log has it; the switch stays as it is."""
