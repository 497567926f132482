"""Typed access to the keys of a JSON object in a model folder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from services.shared.model_folder import BadModelFolder


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """Reads `values`; what is wrong is a `BadModelFolder` that says `where`, which key, and why."""

    where: str
    values: dict[str, Any]

    def wrong(self, key: str, must: str) -> BadModelFolder:
        got = repr(self.values[key]) if key in self.values else "nothing"
        return BadModelFolder(f"{self.where}: {key} must be {must}, got {got:.200}")

    def size(self, key: str, limit: int, default: int | None = None) -> int:
        """An integer from 1 to `limit`; `default` where the key is absent or null."""
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
            raise self.wrong(key, f"an integer from 1 to {limit}")
        return value

    def positive(self, key: str) -> float:
        value = self.values.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong(key, "a number")
        if not 0 < value < math.inf:
            raise self.wrong(key, "positive and finite")
        return float(value)

    def flag(self, key: str) -> bool:
        """True or false; false where the key is absent."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def section(self, key: str) -> ConfigKeys:
        """The object at `key`; an empty one where it is absent or null."""
        value = self.values.get(key)
        if not isinstance(value, dict | None):
            raise self.wrong(key, "an object")
        return ConfigKeys(f"{self.where}: {key}", value or {})
