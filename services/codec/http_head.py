"""Requests as h11 reads them, with a bound on their headers; and answers before there is one."""

from __future__ import annotations

from http import HTTPStatus

import h11

from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.retry import retry_headers
from services.shared.errors import HeadersTooLarge, InvalidRequest, ServiceError
from services.shared.request_id import request_id_from

_AROUND = b": \r\n"
_TOO_LARGE = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class HeadReader(h11.Connection):
    """Refuses requests with too many headers, and remembers why a request was refused.

    Args:
        max_bytes: of a request's head.
        max_headers: of a request.
    """

    def __init__(self, max_bytes: int, max_headers: int) -> None:
        super().__init__(h11.SERVER, max_bytes)
        self._max_bytes = max_bytes
        self._max_headers = max_headers
        self._too_long = f"headers must have at most {max_bytes} bytes"
        self.fault: ServiceError = InvalidRequest("the request is not HTTP/1.1")

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _TOO_LARGE:
                self.fault = HeadersTooLarge(self._too_long)
            raise
        if isinstance(event, h11.Request):
            self._check(event)
        return event

    def _check(self, request: h11.Request) -> None:
        """What came at once was not measured while it was read."""
        count = len(request.headers)
        size = len(request.target) + sum(
            len(name) + len(value) + len(_AROUND) for name, value in request.headers
        )
        if count > self._max_headers:
            text = f"a request must have at most {self._max_headers} headers, got {count}"
        elif size > self._max_bytes:
            text = self._too_long
        else:
            return
        self.fault = HeadersTooLarge(text)
        raise h11.RemoteProtocolError(text, error_status_hint=_TOO_LARGE)


def bare_refusal(error: ServiceError) -> bytes:
    """An error for who has not said yet which protocol it speaks; the connection ends with it."""
    request_id = request_id_from(None)
    refusal = CHAT_COMPLETIONS.refusal(error, request_id)
    name = request_id.encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(refusal.body)),
        (b"connection", b"close"),
        (b"x-request-id", name),
        (b"request-id", name),
        *retry_headers(refusal.status, error.retry_after_s),
    ]
    status = HTTPStatus(refusal.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [b"%b: %b" % header for header in headers]
    return b"\r\n".join([*lines, b"", refusal.body])
