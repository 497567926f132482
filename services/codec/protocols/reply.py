"""What an answer says of itself, and what a refusal looks like."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The answer to one request.

    Args:
        reply_id: hexadecimal digits; protocols put their prefix before them.
        request_id: the name of the request in headers and logs.
        created: seconds since 1970.
        model: the name that the caller used.
        usage_at_end: a stream tells the usage in a chunk of its own.
    """

    reply_id: str
    request_id: str
    created: int
    model: str
    usage_at_end: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error before the first byte: HTTP status and JSON body."""

    status: int
    body: bytes


# One encoder: json.dumps makes a new one for each value when it is told separators.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Any) -> bytes:
    return _encode(value).encode()
