"""A session whose connection is worn goes on over another one, and no generation notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.channel import open_channel
from services.shared.stream import client_session
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CancelReason,
    Finished,
    FinishReason,
    Tokens,
    Usage,
)
from services.shared.stream.load import Load
from services.shared.stream.session_line import LOST
from tests.recorder import Recorder, submission
from tests.shared.stream.puppet import Puppet, puppet_server
from tests.stream_server import Watched
from tests.waiting import until

ACCEPTED = Accepted(prompt_tokens=3, cached_tokens=CachedTokens(), seed=1)
NOWHERE = "127.0.0.1:1"


def finished(tokens: int) -> Finished:
    usage = Usage(prompt_tokens=3, cached_tokens=0, completion_tokens=tokens)
    return Finished(reason=FinishReason.MAX_TOKENS, usage=usage)


class WearingWay:
    """Leads where the test says, and is worn when it says so."""

    def __init__(self, leads_to: str) -> None:
        self.leads_to = leads_to
        self.version = 0
        self.channels: list[grpc.aio.Channel] = []
        self._changed = asyncio.Event()

    def wear(self, leads_to: str) -> None:
        self.leads_to = leads_to
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def dial(self, _: str) -> grpc.aio.Channel:
        self.channels.append(open_channel(self.leads_to))
        return self.channels[-1]

    async def worn(self, version: int) -> None:
        while self.version == version:
            await self._changed.wait()

    def open_channels(self) -> int:
        closed = grpc.ChannelConnectivity.SHUTDOWN
        return sum(channel.get_state() is not closed for channel in self.channels)


@asynccontextmanager
async def session_over(
    way: WearingWay,
    on_load: Callable[[Load | None], None],
    on_blocks: Callable[[BlockEvents], None] | None = None,
) -> AsyncIterator[ClientSession]:
    session = ClientSession(way, "replica", on_load, on_blocks=on_blocks)
    running = asyncio.ensure_future(session.run())
    try:
        yield session
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await session.close()
        assert not way.open_channels()


async def test_what_runs_ends_where_it_began_and_what_is_new_goes_the_new_way() -> None:
    old, new, watched = Puppet(), Puppet(), Watched()
    first, second = Recorder(), Recorder()
    async with puppet_server(old) as before, puppet_server(new) as after:
        way = WearingWay(before)
        async with session_over(way, watched) as session:
            await watched.until(1)
            session.submit(submission("first", first))
            assert (await old.commanded()).submit.request.request_id == "first"
            old.say((0, ACCEPTED), (0, Tokens(0, [5])))
            way.wear(after)
            await watched.until(2)
            session.submit(submission("second", second))
            assert (await new.commanded()).submit.request.request_id == "second"
            old.say((0, Tokens(1, [6, 7])), (0, finished(3)))
            assert await first.ended() == finished(3)
            assert first.ids == [5, 6, 7]
            new.say((0, ACCEPTED), (0, Tokens(0, [8])), (0, finished(1)))
            assert await second.ended() == finished(1)
            await until(lambda: way.open_channels() == 1)
        assert None not in watched.loads[:-1], "it was never down"
    assert (old.sessions, new.sessions) == (1, 1)


async def test_a_cancel_goes_the_way_that_its_generation_went() -> None:
    old, new, watched, recorder = Puppet(), Puppet(), Watched(), Recorder()
    async with puppet_server(old) as before, puppet_server(new) as after:
        way = WearingWay(before)
        async with session_over(way, watched) as session:
            await watched.until(1)
            cancel = session.submit(submission("first", recorder))
            assert (await old.commanded()).submit.stream_id == 0
            way.wear(after)
            await watched.until(2)
            assert way.open_channels() == 2
            cancel(CancelReason.CLIENT_GONE)
            await until(lambda: way.open_channels() == 1)


async def test_while_the_new_way_leads_nowhere_the_old_one_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_session, "LAST_BACKOFF_S", 0.01)
    old, new, watched, recorder = Puppet(), Puppet(), Watched(), Recorder()
    async with puppet_server(old) as before, puppet_server(new) as after:
        way = WearingWay(before)
        async with session_over(way, watched) as session:
            await watched.until(1)
            way.wear(NOWHERE)
            await until(lambda: len(way.channels) > 3)
            session.submit(submission("x", recorder))
            old.say((0, ACCEPTED), (0, Tokens(0, [5])), (0, finished(1)))
            assert await recorder.ended() == finished(1)
            assert None not in watched.loads
            way.leads_to = after
            await until(lambda: new.sessions)
            await until(lambda: way.open_channels() == 1)


async def test_what_is_left_on_an_old_connection_that_breaks_is_lost_and_nothing_else() -> None:
    old, new, watched = Puppet(), Puppet(), Watched()
    first, second = Recorder(), Recorder()
    async with puppet_server(old) as before, puppet_server(new) as after:
        way = WearingWay(before)
        async with session_over(way, watched) as session:
            await watched.until(1)
            session.submit(submission("first", first))
            await old.commanded()
            way.wear(after)
            await watched.until(2)
            session.submit(submission("second", second))
            old.hang_up()
            assert await first.ended() == LOST
            assert None not in watched.loads
            new.say((0, ACCEPTED), (0, Tokens(0, [8])), (0, finished(1)))
            assert await second.ended() == finished(1)


async def test_blocks_are_asked_for_anew_and_those_of_the_old_connection_count_no_more() -> None:
    old, new, watched = Puppet(), Puppet(), Watched()
    heard: list[BlockEvents] = []
    recorder = Recorder()

    def snapshot(of: int) -> pb.BlockEvents:
        return pb.BlockEvents(sequence=1, snapshot=True, stored=bytes([of]) * 16)

    async with puppet_server(old) as before, puppet_server(new) as after:
        way = WearingWay(before)
        async with session_over(way, watched, heard.append) as session:
            await watched.until(1)
            assert (await old.commanded()).HasField("watch_blocks")
            old.say_blocks(snapshot(1))
            await until(lambda: len(heard) == 1)
            session.submit(submission("keeps the old one", recorder))
            way.wear(after)
            assert (await new.commanded()).HasField("watch_blocks")
            old.say_blocks(pb.BlockEvents(sequence=2, stored=b"x" * 16))
            old.say((0, ACCEPTED), (0, Tokens(0, [5])), (0, finished(1)))
            await recorder.ended()
            new.say_blocks(snapshot(2))
            await until(lambda: len(heard) == 2)
    assert [list(events.stored) for events in heard] == [[b"\1" * 16], [b"\2" * 16]]
