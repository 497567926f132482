"""A supply whose reads are spans of the generation that they are for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.engine.kv.supply import Given, Supply, Wanted
from services.shared.span_names import Attribute
from services.shared.stream.events import CacheMiss
from services.shared.telemetry import span
from services.shared.trace_context import current


class TracedSupply:
    """Gives what `inner` gives; a span for each read, none for a block.

    The read belongs to the trace of whoever asks, and what it asks of others belongs to the read.
    """

    def __init__(self, inner: Supply) -> None:
        self.tier = inner.tier
        self._inner = inner

    def can_supply(self, wanted: Wanted) -> bool:
        return self._inner.can_supply(wanted)

    async def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        figures: dict[str, Attribute] = {
            "tier": self.tier.value,
            "wanted_blocks": len(wanted.addresses),
            "found_blocks": 0,
        }
        found = 0
        with span("kv.read", current.get(), figures):
            try:
                async with aclosing(self._inner.supply(wanted)) as given:
                    async for part in given:
                        if isinstance(part, CacheMiss):
                            figures["cache_miss"] = part.name.lower()
                        else:
                            found += len(part)
                        yield part
            finally:
                figures["found_blocks"] = found
