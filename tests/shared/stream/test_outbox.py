"""What waits for a reader is merged, in order, and bounded."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from services.shared.errors import Unavailable
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Event,
    Failed,
    Logprobs,
    Refused,
    Tokens,
)
from services.shared.stream.outbox import MAX_STREAMS, Outbox

ACCEPTED = Accepted(prompt_tokens=1, cached_tokens=CachedTokens(), seed=1)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=30))
def test_however_it_is_read_each_stream_has_all_its_tokens_in_order(
    steps: list[tuple[int, int, bool]],
) -> None:
    outbox: Outbox[Event] = Outbox()
    sent: dict[int, list[int]] = {0: [], 1: [], 2: []}
    read: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def take() -> None:
        for stream_id, events in outbox.take().items():
            assert len(events) == 1
            for event in events:
                assert isinstance(event, Tokens)
                assert event.first_position == len(read[stream_id])
                assert event.logprobs == Logprobs(chosen=[-1.0] * len(event.ids))
                read[stream_id] += event.ids

    for stream_id, count, taken in steps:
        ids = [len(sent[stream_id]) + index for index in range(count)]
        logprobs = Logprobs(chosen=[-1.0] * count)
        outbox.put(stream_id, Tokens(len(sent[stream_id]), ids, logprobs))
        sent[stream_id] += ids
        if taken:
            take()
    take()
    assert read == sent


def test_a_refusal_among_tokens_does_not_part_them_and_waits_once() -> None:
    outbox: Outbox[Event | Refused] = Outbox()
    for event in (ACCEPTED, Tokens(0, [1]), Refused("no"), Tokens(1, [2]), Refused("no")):
        outbox.put(1, event)
    assert outbox.take() == {1: [ACCEPTED, Tokens(0, [1, 2]), Refused("no")]}


async def test_a_dropped_stream_leaves_nothing() -> None:
    outbox: Outbox[Event] = Outbox()
    outbox.put(1, ACCEPTED)
    outbox.put(2, ACCEPTED)
    outbox.drop(1)
    outbox.drop(3)
    await outbox.filled()
    assert outbox.take() == {2: [ACCEPTED]}


async def test_the_reader_wakes_for_an_event_for_the_end_and_after_a_while() -> None:
    outbox: Outbox[Event] = Outbox()
    await outbox.filled(0.001)
    waiting = asyncio.ensure_future(outbox.filled())
    outbox.put(1, ACCEPTED)
    await waiting
    outbox.take()
    waiting = asyncio.ensure_future(outbox.filled())
    outbox.close()
    await waiting
    assert outbox.closed


async def test_a_full_outbox_has_no_room_until_it_is_read() -> None:
    outbox: Outbox[Event] = Outbox()
    gone = Failed.of(Unavailable("gone"))
    for stream_id in range(MAX_STREAMS):
        await outbox.room()
        outbox.put(stream_id, gone)
    waiting = asyncio.ensure_future(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.take()
    await waiting
