"""A read is one span, whatever becomes of it, and what is asked of others belongs to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from services.engine.kv.supply import Given, Wanted
from services.engine.kv.tier import Tier
from services.engine.kv.traced_supply import TracedSupply
from services.shared.stream.events import CacheMiss
from services.shared.trace_context import TraceContext, current
from tests.kept_spans import keeping_spans, parent_of, span_id_of

WANTED = Wanted(addresses=[bytes([at]) * 16 for at in range(3)])
BLOCK = memoryview(b"block")


class Store:
    """Gives these parts; `asked_under` is the trace that it was asked in."""

    tier = Tier.SERVICE

    def __init__(self, parts: Sequence[Given]) -> None:
        self._parts = parts
        self.asked_under: TraceContext | None = None
        self.is_closed = False

    def can_supply(self, wanted: Wanted) -> bool:
        return len(wanted.addresses) == 3

    async def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        assert wanted is WANTED
        self.asked_under = current.get()
        try:
            for part in self._parts:
                yield part
        finally:
            self.is_closed = True


@pytest.mark.parametrize(
    ("parts", "taken", "found", "miss"),
    [
        ([[BLOCK]] * 3, 3, 3, None),
        ([[BLOCK] * 2, CacheMiss.EVICTED], 2, 2, "evicted"),
        ([CacheMiss.OFF], 1, 0, "off"),
        ([[BLOCK]] * 3, 1, 1, None),
    ],
)
async def test_a_read_tells_what_was_found_and_why_not(
    parts: list[Given], taken: int, found: int, miss: str | None
) -> None:
    store, generation = Store(parts), TraceContext.new()
    current.set(generation)
    with keeping_spans() as spans:
        async with aclosing(TracedSupply(store).supply(WANTED)) as given:
            got = [await anext(given) for _ in range(taken)]
        read = spans.one("kv.read")
    assert got == parts[:taken]
    assert store.is_closed
    assert current.get() == generation
    assert parent_of(read) == int(generation.span_id, 16)
    assert store.asked_under is not None
    assert int(store.asked_under.span_id, 16) == span_id_of(read)
    told = {"tokenway.tier": "service", "tokenway.wanted_blocks": 3, "tokenway.found_blocks": found}
    if miss is not None:
        told["tokenway.cache_miss"] = miss
    assert dict(read.attributes or {}) == told


def test_it_can_supply_what_its_store_can() -> None:
    traced = TracedSupply(Store([]))
    assert traced.tier is Tier.SERVICE
    assert traced.can_supply(WANTED)
    assert not traced.can_supply(Wanted(addresses=[b""]))
