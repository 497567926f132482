"""Block events over a real loopback connection, and of servers that garble them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.channel import open_channel
from services.shared.errors import InvalidRequest
from services.shared.stream.block_changes import BlockChanges
from services.shared.stream.block_wire import blocks_from, blocks_of
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Finished
from services.shared.stream.source import BlockWatcher
from tests.recorder import Recorder, submission
from tests.scripted_source import ScriptedSource
from tests.shared.stream.puppet import Puppet, puppet_server
from tests.shared.stream.raw_session import RawSession
from tests.stream_server import Watched, client, playing, stream_server
from tests.waiting import until

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
WATCH = pb.SessionRequest(watch_blocks=pb.WatchBlocks())


class Shelf:
    """A source of blocks that a test stores and drops."""

    def __init__(self, *addresses: bytes) -> None:
        self.addresses = dict.fromkeys(addresses)
        self.watchers: list[BlockWatcher] = []

    def watch(self, watcher: BlockWatcher) -> None:
        if watcher not in self.watchers:
            self.watchers.append(watcher)
        watcher.found(self.addresses)

    def unwatch(self, watcher: BlockWatcher) -> None:
        if watcher in self.watchers:
            self.watchers.remove(watcher)

    def store(self, address: bytes) -> None:
        self.addresses[address] = None
        self._tell(BlockChanges([address]))

    def drop(self, address: bytes) -> None:
        del self.addresses[address]
        changes = BlockChanges()
        changes.drop(address)
        self._tell(changes)

    def _tell(self, changes: BlockChanges) -> None:
        for watcher in self.watchers:
            watcher.changed(changes)


class Known:
    """What a client knows by the events that it was told."""

    def __init__(self) -> None:
        self.addresses: set[bytes] = set()
        self.events: list[BlockEvents] = []

    def __call__(self, events: BlockEvents) -> None:
        self.events.append(events)
        kept = set() if events.snapshot else self.addresses - set(events.dropped)
        self.addresses = kept | set(events.stored)


addresses = st.lists(st.binary(min_size=16, max_size=16), max_size=5)


@given(st.integers(0, 2**64 - 1), st.booleans(), addresses, addresses)
def test_block_events_arrive_as_they_were_sent(
    sequence: int, snapshot: bool, stored: list[bytes], dropped: list[bytes]
) -> None:
    sent = BlockEvents(sequence=sequence, snapshot=snapshot, stored=stored, dropped=dropped)
    raw = blocks_of(sent).SerializeToString()
    assert blocks_from(pb.BlockEvents.FromString(raw)) == sent


@pytest.mark.parametrize("field", ["stored", "dropped"])
def test_bytes_that_are_no_addresses_are_refused_by_field_limit_and_value(field: str) -> None:
    message = pb.BlockEvents(sequence=1)
    setattr(message, field, b"x" * 17)
    with pytest.raises(InvalidRequest) as caught:
        blocks_from(message)
    assert caught.value.message == f"blocks.{field} must be a multiple of 16 bytes, got 17"
    assert caught.value.field == f"blocks.{field}"


async def test_a_client_that_asks_knows_what_is_there_and_what_becomes_of_it() -> None:
    shelf, known = Shelf(A, B), Known()
    async with stream_server(ScriptedSource(), blocks=shelf) as address:
        async with client(address, on_blocks=known):
            await until(lambda: known.addresses == {A, B})
            shelf.store(C)
            shelf.drop(A)
            await until(lambda: known.addresses == {B, C})
        assert known.events[0].snapshot
        assert [events.sequence for events in known.events] == [1, 2]
        await until(lambda: not shelf.watchers)


async def test_a_client_that_does_not_ask_is_told_nothing() -> None:
    shelf, recorder = Shelf(A), Recorder()
    source = ScriptedSource()
    async with stream_server(source, blocks=shelf) as address, client(address) as session:
        session.submit(submission("x", recorder))
        async with playing(source):
            await recorder.ended()
        assert not shelf.watchers


async def test_a_server_without_blocks_ignores_the_question() -> None:
    known, recorder, source = Known(), Recorder(), ScriptedSource()
    async with (
        stream_server(source) as address,
        client(address, on_blocks=known) as session,
        playing(source),
    ):
        session.submit(submission("x", recorder))
        assert isinstance(await recorder.ended(), Finished)
    assert not known.events


async def test_asking_again_brings_all_of_them_again_and_the_count_goes_on() -> None:
    shelf = Shelf(A, B)
    async with (
        stream_server(ScriptedSource(), blocks=shelf) as address,
        open_channel(address) as channel,
    ):
        raw = RawSession(channel)
        for sequence in (1, 2):
            await raw.write(WATCH)
            while not (response := await raw.read()).HasField("blocks"):
                pass
            assert blocks_from(response.blocks) == BlockEvents(
                sequence=sequence, snapshot=True, stored=[A, B], dropped=[]
            )
        assert len(shelf.watchers) == 1


async def test_a_burst_of_questions_is_answered_once() -> None:
    shelf, source = Shelf(), ScriptedSource()
    async with stream_server(source, blocks=shelf) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        for _ in range(50):
            await raw.write(WATCH)
        await raw.submit(0, "after")
        await until(lambda: source.running)
        shelf.store(A)
        told: list[BlockEvents] = []
        while A not in {address for events in told for address in events.stored}:
            response = await raw.read()
            if response.HasField("blocks"):
                told.append(blocks_from(response.blocks))
        assert sum(events.snapshot for events in told) <= 2


async def test_a_gap_brings_the_question_again() -> None:
    puppet, known = Puppet(), Known()
    async with puppet_server(puppet) as address, client(address, on_blocks=known):
        assert await puppet.commanded() == WATCH
        puppet.say_blocks(pb.BlockEvents(sequence=1, snapshot=True, stored=A))
        puppet.say_blocks(pb.BlockEvents(sequence=3, stored=B))
        assert await puppet.commanded() == WATCH
        assert known.addresses == {A}
        puppet.say_blocks(pb.BlockEvents(sequence=4, snapshot=True, stored=B + C))
        await until(lambda: known.addresses == {B, C})


async def test_a_new_session_asks_anew() -> None:
    puppet, known, watched = Puppet(), Known(), Watched()
    async with puppet_server(puppet) as address, client(address, watched, known):
        await puppet.commanded()
        puppet.say_blocks(pb.BlockEvents(sequence=1, snapshot=True, stored=A))
        puppet.hang_up()
        assert await puppet.commanded() == WATCH
        puppet.say_blocks(pb.BlockEvents(sequence=1, snapshot=True, stored=B))
        await until(lambda: known.addresses == {B})


async def test_addresses_that_are_none_end_the_session_and_name_server_and_field(
    caplog: pytest.LogCaptureFixture,
) -> None:
    puppet, known, watched = Puppet(), Known(), Watched()
    async with puppet_server(puppet) as address, client(address, watched, known):
        puppet.say_blocks(pb.BlockEvents(sequence=1, snapshot=True, stored=b"x" * 17))
        await watched.until(3)
    assert (
        f"{address} does not speak the protocol: "
        "blocks.stored must be a multiple of 16 bytes, got 17" in caplog.text
    )
    assert puppet.sessions == 2
    assert not known.events
