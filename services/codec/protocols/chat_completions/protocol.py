"""Chat Completions as one value."""

from __future__ import annotations

from services.codec.protocols.chat_completions.errors import refusal
from services.codec.protocols.chat_completions.reply import whole
from services.codec.protocols.chat_completions.request import parse
from services.codec.protocols.chat_completions.stream import Stream
from services.codec.protocols.wire_protocol import WireProtocol

CHAT_COMPLETIONS = WireProtocol(
    name="chat_completions", parse=parse, stream=Stream, whole=whole, refusal=refusal
)
