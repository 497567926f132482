"""Messages as one value."""

from __future__ import annotations

from services.codec.protocols.messages.errors import refusal
from services.codec.protocols.messages.reply import whole
from services.codec.protocols.messages.request import parse
from services.codec.protocols.messages.stream import Stream
from services.codec.protocols.wire_protocol import WireProtocol

MESSAGES = WireProtocol(name="messages", parse=parse, stream=Stream, whole=whole, refusal=refusal)
