"""JSON over ASGI."""

from __future__ import annotations

from starlette.types import Receive, Send

from services.codec.http_body import discard
from services.codec.protocols.reply import Refusal

RETRY_LATER = frozenset({429, 503, 529})
RETRY_AFTER_S = 1


async def send_json(send: Send, status: int, body: bytes, *, more_body: bool = False) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    if status in RETRY_LATER:
        headers.append((b"retry-after", b"%d" % RETRY_AFTER_S))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": more_body})


async def send_refusal(
    refusal: Refusal, receive: Receive, send: Send, *, unread_limit: int
) -> None:
    """Sends an error; when it is about the size of the body, the rest is read and forgotten."""
    too_large = refusal.status == 413
    await send_json(send, refusal.status, refusal.body, more_body=too_large)
    if too_large:
        await discard(receive, unread_limit)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
