"""Completions as one value."""

from __future__ import annotations

from functools import partial

from services.codec.protocols.chat_completions.errors import refusal
from services.codec.protocols.completions.reply import whole
from services.codec.protocols.completions.request import parse
from services.codec.protocols.completions.stream import Stream
from services.codec.protocols.wire_protocol import WireProtocol

COMPLETIONS = WireProtocol(
    name="completions",
    parse=parse,
    stream=Stream,
    whole=whole,
    refusal=partial(refusal, prompt="prompt"),
)
