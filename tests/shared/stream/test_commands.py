"""What waits to be sent over one connection."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.stream.commands import Commands

WATCH = pb.SessionRequest(watch_blocks=pb.WatchBlocks())
CANCEL = pb.SessionRequest(cancel=pb.Cancel(stream_id=1))


async def first(commands: AsyncIterator[pb.SessionRequest], count: int) -> list[pb.SessionRequest]:
    return [await anext(commands) for _ in range(count)]


async def test_a_command_that_waits_already_is_not_put_again_however_slow_the_server_is() -> None:
    commands = Commands()
    for _ in range(100):
        commands.put_once(WATCH)
    commands.put(CANCEL)
    sent = aiter(commands)
    assert await first(sent, 2) == [WATCH, CANCEL]
    commands.put_once(WATCH)
    assert await first(sent, 1) == [WATCH]
