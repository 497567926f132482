"""How bodies are read: what depends on the model and on the operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from services.codec.protocols.fields import Fields
from services.codec.protocols.images import without_images
from services.codec.protocols.json_body import object_of
from services.codec.protocols.seal import Seal


class Images(StrEnum):
    """What becomes of images, which the model cannot see."""

    REJECT = "reject"
    PLACEHOLDER = "placeholder"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Terms of reading.

    Args:
        vocabulary_size: token IDs of callers are below it.
        model: what is meant where a page lets callers leave the model out.
        images: refused, or a short note in their place.
        seal: marks reasoning that callers keep for us.
    """

    vocabulary_size: int
    model: str = ""
    images: Images = Images.REJECT
    seal: Seal = field(default_factory=Seal)

    def fields(self, body: bytes) -> Fields:
        """Raises InvalidRequest for what is no JSON object within bounds."""
        read = object_of(body)
        return read if self.images is Images.REJECT else without_images(read)
