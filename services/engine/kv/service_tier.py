"""The service cache of an engine: what reads its store, what writes to it, and their end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from services.engine.kv.cache_settings import CacheSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.records import Records
from services.engine.kv.service_cache import ServiceCache
from services.engine.kv.store import StoreFailed
from services.engine.kv.stores.opening import open_store
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Skip
from services.engine.kv.write_behind import WriteBehind
from services.engine.loop import EngineLoop
from services.engine.parts import Parts

QUIET_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceTier:
    reader: ServiceCache
    writer: WriteBehind

    async def quiet(self) -> None:
        """Returns when no write is on its way, or after a second."""
        await self.writer.quiet(QUIET_S)

    async def flush(self) -> int:
        """Drops all records of this layout and what waits to be written; tells how many records.

        Raises:
            Unavailable: the store failed, or was not done within a minute.
        """
        self.writer.drop(Skip.NOT_WORTH)
        await self.quiet()
        return await self.reader.flush()


@asynccontextmanager
async def open_service(
    settings: CacheSettings,
    parts: Parts,
    loop: EngineLoop,
    *,
    switch: CacheSwitch,
    figures: TierFigures,
) -> AsyncIterator[ServiceTier | None]:
    """Reader and writer of the store that the settings ask for; None where they ask for none.

    At the end what waits is written, and the store is closed, within six seconds. A store that
    hangs then is left as it is.

    Raises:
        BadConfig: the store cannot be as it is wanted.
    """
    layout_id, memory = parts.model.kv_layout_id, parts.memory
    store = open_store(settings, layout_id, memory.block_bytes)
    if store is None:
        yield None
        return
    records = Records(store, layout_id)
    tier = ServiceTier(
        reader=ServiceCache(records, switch, figures, settings),
        writer=WriteBehind(loop, memory, records, settings.write, switch=switch, figures=figures),
    )
    try:
        yield tier
    finally:
        ended = [await tier.writer.close(), await tier.reader.close()]
        if all(ended):
            _close(records)
        else:
            _log.warning("the service cache hangs; its connections end with the process")


def _close(records: Records) -> None:
    try:
        records.close()
    except StoreFailed as error:
        _log.warning("the service cache cannot be closed: %s", error)
