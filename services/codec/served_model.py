"""The model as callers know it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from services.shared.errors import NotFound


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedModel:
    """One model under one or more names.

    Args:
        names: what callers may ask for; the first is the model's own.
        created: seconds since 1970.
        context_length: tokens of prompt and output together; None until the engine told it.
    """

    names: tuple[str, ...]
    created: int
    context_length: int | None = None

    def only(self, names: Collection[str]) -> ServedModel:
        """For those who may ask for these names alone; none named, for all."""
        if not names:
            return self
        return replace(self, names=tuple(name for name in self.names if name in names))

    def check(self, name: str) -> None:
        """Raises NotFound for a name that is none of the model's."""
        if name not in self.names:
            shown = name if len(name) <= 100 else f"{name[:100]}..."
            raise NotFound(f"the model {shown!r} does not exist", field="model")
