"""JSON over ASGI."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.types import Receive, Send

from services.codec.http_body import discard
from services.codec.protocols.reply import Refusal

BUG = 500

Headers = Sequence[tuple[bytes, bytes]]


async def send_json(
    send: Send, status: int, body: bytes, headers: Headers = (), *, more_body: bool = False
) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    if status == BUG:
        # The same request would meet the same bug; clients ask again after every other 5xx.
        headers.append((b"x-should-retry", b"false"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": more_body})


def json_response(body: bytes) -> Response:
    return Response(body, media_type="application/json")


async def send_refusal(
    refusal: Refusal, receive: Receive, send: Send, *, unread_limit: int, headers: Headers = ()
) -> None:
    """Sends an error; then up to `unread_limit` bytes of the body are read and forgotten.

    A connection that is closed before may be reset, and the client never reads the error.
    """
    await send_json(send, refusal.status, refusal.body, headers, more_body=unread_limit > 0)
    if unread_limit > 0:
        await discard(receive, unread_limit)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
