"""Reading a request's body from ASGI, up to a limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Receive, Scope

from services.shared.errors import Cancelled, RequestTooLarge, SentTooSlowly

DISCARD_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyLimits:
    """What a body may have of bytes and of seconds: who sends slowly holds memory for nothing."""

    max_bytes: int
    timeout_s: float


async def body_of(scope: Scope, receive: Receive, limits: BodyLimits) -> bytes:
    """The whole body.

    Raises:
        RequestTooLarge: more bytes are announced or come.
        SentTooSlowly: the end did not come in time.
        Cancelled: the client left before the end.
    """
    limit = limits.max_bytes
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if int(announced) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(limits.timeout_s):
            return await _received(receive, limit)
    except TimeoutError:
        raise SentTooSlowly(f"the body must be sent within {limits.timeout_s:g} seconds") from None


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
