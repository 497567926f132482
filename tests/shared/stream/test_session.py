"""Sessions over a real loopback connection."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.channel import open_channel
from services.shared.errors import Code, InvalidRequest, Overloaded, ServiceError, Unavailable
from services.shared.stream.events import CancelReason, Event, Failed, Finished, Refused, Tokens
from services.shared.stream.load import ReplicaState
from tests.raw_peer import speak
from tests.recorder import Recorder, submission
from tests.scripted_source import ScriptedSource, oracle
from tests.shared.stream.raw_session import RawSession
from tests.stream_server import SERVICE, Watched, client, playing, stream_server
from tests.waiting import until


def kinds(received: list[tuple[int, Event | Refused]], stream_id: int) -> list[type]:
    return [type(event) for of, event in received if of == stream_id]


async def test_256_generations_share_a_session_and_none_loses_a_token() -> None:
    source = ScriptedSource()
    recorders = [Recorder() for _ in range(256)]
    async with stream_server(source) as address, client(address) as session:
        for index, recorder in enumerate(recorders):
            options = {"prompt_ids": (index, 1), "max_tokens": index % 20}
            session.submit(submission(f"r{index}", recorder, **options))
        async with playing(source):
            for recorder in recorders:
                assert isinstance(await recorder.ended(), Finished)
    for index, recorder in enumerate(recorders):
        assert recorder.ids == oracle((index, 1), index % 20)
        assert recorder.accepted() == 1


async def test_a_step_of_many_streams_is_one_frame() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        for stream_id in range(64):
            await raw.submit(stream_id, f"r{stream_id}")
        await until(lambda: len(source.running) == 64)
        source.step()
        await raw.read_until(lambda received: len(received) == 64)
        source.step()
        await raw.read()
        assert sum(isinstance(event, Tokens) for _, event in raw.received) == 64


async def test_what_a_slow_reader_missed_is_one_event() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        await raw.submit(0, "slow", max_tokens=50)
        await until(lambda: source.running)
        for _ in range(60):
            source.step()
        await raw.read_until(
            lambda received: isinstance(received[-1:][0][1], Finished) if received else False
        )
        token_events = [event for _, event in raw.received if isinstance(event, Tokens)]
        assert [event.ids for event in token_events] == [oracle((1, 2, 3), 50)]


async def test_a_stream_id_that_was_used_is_refused_and_the_running_stream_goes_on() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        await raw.submit(5, "first")
        await raw.submit(5, "again")
        await raw.submit(3, "lower")
        await raw.read_until(lambda received: kinds(received, 3) == [Refused])
        async with playing(source):
            await raw.read_until(lambda received: Finished in kinds(received, 5))
        tokens = [
            token
            for of, event in raw.received
            if of == 5 and isinstance(event, Tokens)
            for token in event.ids
        ]
        assert tokens == oracle((1, 2, 3), 4)
        assert kinds(raw.received, 5).count(Refused) == 1
        assert [entry.generation.request_id for entry in source.submitted] == ["first"]


async def test_commands_that_mean_nothing_are_ignored() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        await raw.write(pb.SessionRequest())
        await raw.write(pb.SessionRequest(cancel=pb.Cancel(stream_id=99)))
        await raw.write(pb.SessionRequest.FromString(b"\x7a\x03abc"))
        await raw.submit(1, "after")
        async with playing(source):
            await raw.read_until(lambda received: Finished in kinds(received, 1))


async def test_a_submission_out_of_bounds_fails_alone_with_its_field() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        await raw.write(pb.SessionRequest(submit=pb.Submit(stream_id=0)))
        await raw.submit(1, "right")
        async with playing(source):
            await raw.read_until(lambda received: Finished in kinds(received, 1))
        assert (
            0,
            Failed(
                code=Code.INVALID_ARGUMENT,
                message="prompt_ids must not be empty",
                field="prompt_ids",
            ),
        ) in raw.received


async def test_bytes_that_are_no_command_end_that_session_only() -> None:
    source = ScriptedSource()
    recorder = Recorder()
    async with stream_server(source) as address, client(address) as session:
        session.submit(submission("good", recorder))
        async with open_channel(address) as channel:
            untyped: Any = channel
            call = untyped.stream_stream(f"/{SERVICE}/Session")(iter([b"\x80\x04\x95pickle"]))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async for _ in call:
                    pass
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        async with playing(source):
            assert isinstance(await recorder.ended(), Finished)


async def test_garbage_on_the_port_harms_nothing() -> None:
    source = ScriptedSource()
    recorder = Recorder()
    async with stream_server(source) as address, client(address) as session:
        session.submit(submission("good", recorder))
        for garbage in (
            b"\x00" * 4096,
            b"\x80\x04\x95pickle",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n!!",
        ):
            await speak(address, garbage)
        async with playing(source):
            assert isinstance(await recorder.ended(), Finished)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Overloaded("full"), Failed(code=Code.RESOURCE_EXHAUSTED, message="full", retryable=True)),
        (Unavailable("no"), Failed(code=Code.UNAVAILABLE, message="no", retryable=True)),
        (
            InvalidRequest("bad", field="model"),
            Failed(code=Code.INVALID_ARGUMENT, message="bad", field="model"),
        ),
        (KeyError("secret"), Failed(code=Code.INTERNAL, message="internal error")),
    ],
)
async def test_a_submission_that_is_not_taken_fails_with_what_the_source_said(
    error: ServiceError | Exception, told: Failed
) -> None:
    source = ScriptedSource(refuse=error)
    recorder = Recorder()
    async with stream_server(source) as address, client(address) as session:
        session.submit(submission("x", recorder))
        assert await recorder.ended() == told


async def test_a_cancel_stops_the_events_and_reaches_the_source_with_its_reason() -> None:
    source = ScriptedSource()
    gone, staying = Recorder(), Recorder()
    async with stream_server(source) as address, client(address) as session:
        cancel = session.submit(submission("gone", gone, max_tokens=1000))
        session.submit(submission("staying", staying, max_tokens=50))
        async with playing(source):
            await gone.until(3)
            cancel(CancelReason.STOP_TEXT)
            seen = len(gone.events)
            await until(lambda: source.cancelled)
            assert isinstance(await staying.ended(), Finished)
            cancel(CancelReason.CLIENT_GONE)
    assert source.cancelled == [("gone", CancelReason.STOP_TEXT)]
    assert len(gone.events) == seen


async def test_the_end_of_a_session_cancels_its_generations_only() -> None:
    source = ScriptedSource()
    staying = Recorder()
    async with stream_server(source) as address, client(address) as session:
        session.submit(submission("staying", staying))
        async with client(address) as other:
            other.submit(submission("gone", Recorder()))
            await until(lambda: len(source.running) == 2)
        await until(lambda: source.cancelled == [("gone", CancelReason.CLIENT_GONE)])
        async with playing(source):
            assert isinstance(await staying.ended(), Finished)


async def test_a_client_that_is_done_writing_ends_its_session() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        raw = RawSession(channel)
        await raw.submit(0, "gone")
        await until(lambda: source.running)
        await raw.done_writing()
        assert await raw.code() is grpc.StatusCode.OK
        assert source.cancelled == [("gone", CancelReason.CLIENT_GONE)]


async def test_the_load_comes_at_the_start_and_while_nothing_happens() -> None:
    source, watched = ScriptedSource(), Watched()
    async with stream_server(source) as address, client(address, watched) as session:
        assert session.load().state is ReplicaState.READY
        source.state = ReplicaState.DRAINING
        await watched.until(2)
        assert session.load().state is ReplicaState.DRAINING
        assert watched.loads[-1] == session.load()
