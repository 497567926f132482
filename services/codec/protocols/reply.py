"""What an answer says of itself, and what a refusal looks like."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from services.codec.events import Usage
from services.codec.protocols.seal import Seal
from services.codec.request import Delivery, Request
from services.codec.told_timeline import KEY


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The answer to one request.

    Args:
        reply_id: hexadecimal digits; protocols put their prefix before them.
        request_id: the name of the request in headers and logs.
        created: seconds since 1970.
        request: what is answered.
        seal: marks reasoning that callers keep for us.
    """

    reply_id: str
    request_id: str
    created: int
    request: Request
    seal: Seal = field(default_factory=Seal)

    @property
    def model(self) -> str:
        """The name that the caller used."""
        return self.request.model

    @property
    def delivery(self) -> Delivery:
        return self.request.delivery


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error before the first byte: HTTP status and JSON body."""

    status: int
    body: bytes


def told(usage: Usage) -> dict[str, Any]:
    """What stands beside the usage, where the caller wants to know where the time went."""
    return {} if usage.timeline is None else {KEY: usage.timeline.as_dict()}


# One encoder: json.dumps makes a new one for each value when it is told separators.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Any) -> bytes:
    """Lone surrogates, which JSON escapes can hide in a model's words, become question marks."""
    return _encode(value).encode(errors="replace")


def call_name(prefix: str, call_id: str) -> str:
    """A call's ID as a protocol writes it: its own prefix, then letters, digits, `_` and `-`."""
    plain = re.sub("[^A-Za-z0-9_-]", "_", call_id.removeprefix("call_"))
    return f"{prefix}{plain}"
