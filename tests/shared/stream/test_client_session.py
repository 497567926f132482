"""A client's session with servers that break off, lie or speak garbage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.errors import Code, Unavailable
from services.shared.server import serving
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CancelReason,
    Failed,
    Finished,
    FinishReason,
    Tokens,
    Usage,
)
from services.shared.stream.load import ReplicaState
from services.shared.stream.session_line import LOST
from services.shared.stream.source import Submission
from services.shared.tls.way import CLEAR
from tests.recorder import Recorder, submission
from tests.scripted_source import ScriptedSource
from tests.shared.stream.puppet import Puppet, puppet_server
from tests.stream_server import SERVICE, Watched, client, playing, stream_server
from tests.waiting import until

ACCEPTED = Accepted(prompt_tokens=3, cached_tokens=CachedTokens(), seed=1)
USAGE = Usage(prompt_tokens=3, cached_tokens=0, completion_tokens=1)
FINISHED = Finished(reason=FinishReason.MAX_TOKENS, usage=USAGE)


async def test_a_stream_that_the_server_garbles_is_cancelled_there_and_others_go_on() -> None:
    puppet = Puppet()
    bad, good = Recorder(), Recorder()
    async with puppet_server(puppet) as address, client(address) as session:
        session.submit(submission("bad", bad))
        session.submit(submission("good", good))
        puppet.say((0, ACCEPTED), (1, ACCEPTED), (0, Tokens(0, [5])), (0, Tokens(2, [6])))
        puppet.say((0, Tokens(9, [7])), (1, Tokens(0, [5])), (1, FINISHED))
        assert await good.ended() == FINISHED
        for _ in range(2):
            await puppet.commanded()
        assert (await puppet.commanded()).cancel.stream_id == 0
    message = "a replica sent position 2 instead of 1"
    assert bad.last == Failed(code=Code.DATA_LOSS, message=message, retryable=True)


async def test_positions_go_on_from_the_generated_ids() -> None:
    puppet, recorder = Puppet(), Recorder()
    end = replace(FINISHED, usage=replace(USAGE, completion_tokens=5))
    async with puppet_server(puppet) as address, client(address) as session:
        generation = replace(
            submission("x", recorder, max_tokens=5).generation, generated_ids=[8, 9]
        )
        session.submit(Submission(generation, "", recorder))
        puppet.say((0, ACCEPTED), (0, Tokens(2, [5, 6])), (0, Tokens(4, [7])), (0, end))
        assert await recorder.ended() == end


async def test_a_frame_that_makes_no_sense_ends_the_session_and_names_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    puppet, recorder, watched = Puppet(), Recorder(), Watched()
    async with puppet_server(puppet) as address, client(address, watched) as session:
        session.submit(submission("x", recorder))
        puppet.say_frame(pb.StepFrame(stream_ids=[0], counts=[1]))
        assert await recorder.ended() == LOST
        await watched.until(3)
    assert f"{address} does not speak the protocol" in caplog.text
    assert puppet.sessions == 2


async def test_bytes_that_are_no_message_end_the_session_and_name_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answered = asyncio.Event()

    async def garbage(_: Any, __: Any) -> AsyncIterator[bytes]:
        answered.set()
        yield b"\x80\x04\x95pickle"

    method: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(garbage)
    handler = grpc.method_handlers_generic_handler(SERVICE, {"Session": method})

    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((handler,))

    async with serving("127.0.0.1:0", register, [SERVICE], grace_s=0) as door:
        faults: list[str] = []
        session = ClientSession(CLEAR, door.address, on_fault=faults.append)
        running = asyncio.ensure_future(session.run())
        told = f"{door.address} does not speak the protocol"
        await until(lambda: told in caplog.text)
        with pytest.raises(Unavailable, match=f"{door.address} is not reachable"):
            session.submit(submission("x", Recorder()))
        assert not running.done()
        assert faults[0].startswith(told)
        running.cancel()
        await session.close()


async def test_a_server_that_comes_back_gets_the_commands_of_its_new_session() -> None:
    puppet, watched = Puppet(), Watched()
    lost = Recorder()
    async with puppet_server(puppet) as address, client(address, watched) as session:
        cancel = session.submit(submission("lost", lost))
        assert (await puppet.commanded()).submit.request.request_id == "lost"
        puppet.hang_up()
        assert await lost.ended() == LOST
        assert watched.loads[-1] is None
        assert session.load().state is ReplicaState.STARTING
        with pytest.raises(Unavailable, match=f"{address} is not reachable"):
            session.submit(submission("early", Recorder()))
        await watched.until(3)
        cancel(CancelReason.CLIENT_GONE)
        recorders = [Recorder() for _ in range(5)]
        for index, recorder in enumerate(recorders):
            session.submit(submission(f"after{index}", recorder))
        names = [(await puppet.commanded()).submit.request.request_id for _ in recorders]
        assert names == [f"after{index}" for index in range(5)]


async def test_a_server_that_restarts_at_its_port_is_found_again() -> None:
    source, watched = ScriptedSource(), Watched()
    lost, after = Recorder(), Recorder()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        address = await first.enter_async_context(stream_server(source))
        session = await stack.enter_async_context(client(address, watched))
        session.submit(submission("lost", lost))
        await first.aclose()
        assert await lost.ended() == LOST
        count = len(watched.loads)
        await stack.enter_async_context(stream_server(source, address))
        await watched.until(count + 1)
        session.submit(submission("after", after))
        await stack.enter_async_context(playing(source))
        assert isinstance(await after.ended(), Finished)
