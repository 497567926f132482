"""Images of a conversation as notes, for agents that send screenshots to a model of text."""

from __future__ import annotations

from typing import Any

from services.codec.protocols.fields import Fields

NOTE = "[image left out: the model reads text]"

_KINDS = {"image_url": "text", "image": "text", "input_image": "input_text"}
_HOLDERS = ("messages", "input", "content", "output")


def without_images(body: Fields) -> Fields:
    """A copy in which each image among messages, items and contents is a text."""
    return Fields(_replaced(body.values), body.path)


def _replaced(value: Any) -> Any:
    """Nesting is bounded by the body's."""
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        return {"type": _KINDS[kind], "text": NOTE}
    return {name: _replaced(item) if name in _HOLDERS else item for name, item in value.items()}
