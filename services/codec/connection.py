"""The client of an ASGI request: whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

from services.shared.errors import Cancelled


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncIterator[None]:
    """Runs the block until it ends or the client leaves, whichever comes first.

    The body must have been read. The last message of the response is sent after the block: it ends
    the connection for those who wait for its end.

    Raises:
        Cancelled: the client left.
    """
    try:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(_until_gone(receive))
            yield
            watcher.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise Cancelled("the client left")
