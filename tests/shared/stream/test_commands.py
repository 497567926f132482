"""What waits to be sent over one connection."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.stream.commands import Commands

WATCH = pb.SessionRequest(watch_blocks=pb.WatchBlocks())


def submit(stream_id: int) -> pb.SessionRequest:
    return pb.SessionRequest(submit=pb.Submit(stream_id=stream_id))


def cancel(stream_id: int) -> pb.SessionRequest:
    return pb.SessionRequest(cancel=pb.Cancel(stream_id=stream_id))


async def first(commands: AsyncIterator[pb.SessionRequest], count: int) -> list[pb.SessionRequest]:
    return [await anext(commands) for _ in range(count)]


async def test_a_question_that_waits_already_is_not_put_again_however_slow_the_server_is() -> None:
    commands = Commands()
    for _ in range(100):
        commands.put(WATCH)
    commands.put(cancel(1))
    sent = aiter(commands)
    assert await first(sent, 2) == [WATCH, cancel(1)]
    commands.put(WATCH)
    assert await first(sent, 1) == [WATCH]


async def test_what_was_sent_is_cancelled_and_what_was_not_is_never_sent() -> None:
    commands = Commands()
    for stream_id in range(3):
        commands.put(submit(stream_id))
    sent = aiter(commands)
    assert await first(sent, 1) == [submit(0)]
    commands.put(cancel(0))
    commands.put(cancel(1))
    assert await first(sent, 2) == [submit(2), cancel(0)]
    assert len(commands) == 0
