"""Reading a request's body from ASGI, up to a limit."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope

from services.shared.errors import Cancelled, DeadlineExceeded, RequestTooLarge

RECEIVE_S = 60.0
"""A body is there by then; who sends more slowly holds memory for nothing."""

DISCARD_S = 2.0


async def body_of(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body.

    Raises:
        RequestTooLarge: more than `limit` bytes are announced or come.
        DeadlineExceeded: the end did not come within a minute.
        Cancelled: the client left before the end.
    """
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if int(announced) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(RECEIVE_S):
            return await _received(receive, limit)
    except TimeoutError:
        raise DeadlineExceeded(f"the body must be sent within {RECEIVE_S:.0f} seconds") from None


async def _received(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Cancelled("the client left")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
    return b"".join(parts)


async def discard(receive: Receive, limit: int) -> None:
    """Reads on and forgets, within bounds: a client reads the answer only when all is sent."""
    try:
        async with asyncio.timeout(DISCARD_S):
            while limit > 0:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
                limit -= len(message.get("body", b""))
    except TimeoutError:
        return


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"the body must be at most {limit} bytes")
