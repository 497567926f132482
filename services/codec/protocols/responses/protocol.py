"""Responses as one value."""

from __future__ import annotations

from functools import partial

from services.codec.protocols.chat_completions.errors import refusal
from services.codec.protocols.responses.reply import whole
from services.codec.protocols.responses.request import parse
from services.codec.protocols.responses.stream import Stream
from services.codec.protocols.wire_protocol import WireProtocol

RESPONSES = WireProtocol(
    name="responses",
    parse=parse,
    stream=Stream,
    whole=whole,
    refusal=partial(refusal, prompt="input"),
)
