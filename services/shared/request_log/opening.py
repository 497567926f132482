"""The request log that settings ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from services.shared.request_log.database import open_database
from services.shared.request_log.request_log import Bounds, RequestLog
from services.shared.request_log.settings import RequestLogSettings

FLUSH_S = 5.0
"""How long at the end the last rows have to reach the database."""

_DAY_S = 86_400.0


@asynccontextmanager
async def logging_requests(settings: RequestLogSettings) -> AsyncIterator[RequestLog | None]:
    """Writes rows inside the block, and those that wait at its end; None without a database.

    A database that is not there stops nobody: it is opened when it is.
    """
    if settings.url is None:
        yield None
        return
    log = RequestLog(partial(open_database, settings), Bounds(keep_s=settings.keep_days * _DAY_S))
    log.start()
    try:
        yield log
    finally:
        await asyncio.to_thread(log.close, FLUSH_S)
