"""What a client believes of a server's events, and whom it names when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.shared.errors import Code
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CancelReason,
    Event,
    Failed,
    Finished,
    FinishReason,
    Refused,
    Tokens,
    Usage,
)
from services.shared.stream.open_streams import OpenStreams
from tests.recorder import Recorder

ACCEPTED = Accepted(prompt_tokens=3, cached_tokens=CachedTokens(), seed=1)
USAGE = Usage(prompt_tokens=3, cached_tokens=0, completion_tokens=1)
FINISHED = Finished(reason=FinishReason.MAX_TOKENS, usage=USAGE)
LATE = replace(FINISHED, usage=replace(USAGE, completion_tokens=2))
LOST = Failed(code=Code.UNAVAILABLE, message="lost", retryable=True)


class Client:
    """Open streams, and what they say to the server and to their owner."""

    def __init__(self) -> None:
        self.cancels: list[tuple[int, CancelReason]] = []
        self.faults: list[str] = []
        self.streams = OpenStreams(
            "server", lambda *cancel: self.cancels.append(cancel), self.faults.append
        )

    def open(self, delivered: int = 0, limit: int | None = None) -> tuple[int, Recorder]:
        recorder = Recorder()
        return self.streams.open(recorder, delivered, limit), recorder


@pytest.mark.parametrize(
    ("events", "wrong"),
    [
        ([ACCEPTED, Tokens(0, [5]), Tokens(0, [5])], "position 0 instead of 1"),
        ([ACCEPTED, Tokens(0, [5]), Tokens(2, [5])], "position 2 instead of 1"),
        ([ACCEPTED, Tokens(0, [5]), Tokens(1, [5, 5])], "3 tokens of 2 at most"),
        ([ACCEPTED, ACCEPTED], "a second Accepted"),
        ([ACCEPTED, Tokens(0, [5]), LATE], "the end of 2 tokens after 1"),
        ([Tokens(0, [5])], "Tokens before Accepted"),
        ([FINISHED], "Finished before Accepted"),
        ([Refused("old")], "a refusal of a new stream: old"),
    ],
)
def test_a_stream_that_is_not_as_it_should_be_fails_alone_and_names_the_server(
    events: list[Event | Refused], wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client()
    (bad, failing), (good, other) = client.open(limit=2), client.open(limit=1)
    client.streams.receive([(bad, event) for event in events])
    client.streams.receive([(bad, Tokens(1, [7])), (bad, FINISHED)])
    client.streams.receive([(good, ACCEPTED), (good, Tokens(0, [5])), (good, FINISHED)])
    message = f"a replica sent {wrong}"
    assert failing.events == [
        *events[:-1],
        Failed(code=Code.DATA_LOSS, message=message, retryable=True),
    ]
    assert client.cancels == [(bad, CancelReason.UNSPECIFIED)]
    assert f"server sent {wrong}" in caplog.text
    assert other.last == FINISHED
    assert (client.faults, len(client.streams)) == ([], 0)


def test_positions_begin_after_the_tokens_that_are_known() -> None:
    client = Client()
    stream_id, recorder = client.open(delivered=1)
    events: list[Event] = [ACCEPTED, Tokens(1, [5, 6]), Tokens(3, [7])]
    end = replace(FINISHED, usage=replace(USAGE, completion_tokens=4))
    client.streams.receive((stream_id, event) for event in [*events, end])
    assert recorder.events == [*events, end]


def test_a_refusal_of_a_stream_that_runs_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    stream_id, recorder = client.open()
    events: list[Event | Refused] = [ACCEPTED, Refused("not new"), Tokens(0, [5]), FINISHED]
    client.streams.receive((stream_id, event) for event in events)
    assert recorder.events == [ACCEPTED, Tokens(0, [5]), FINISHED]
    assert f"server refused stream {stream_id}: not new" in caplog.text


def test_events_of_streams_that_were_never_sent_are_counted_and_told_once_a_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client()
    old, recorder = client.open()
    client.streams.receive([(77, ACCEPTED), (78, FINISHED)])
    assert client.streams.unknown_events == 2
    assert client.faults == ["server sent events of stream 77, which it was never sent"]
    assert caplog.text.count("server sent events of stream") == 1
    client.streams.lose(LOST)
    assert recorder.events == [LOST]
    client.streams.receive([(old, ACCEPTED)])
    assert client.faults[1:] == ["server sent events of stream 0, which it was never sent"]


def test_what_comes_after_a_cancel_or_an_end_is_dropped() -> None:
    client = Client()
    (gone, cancelled), (done, ended) = client.open(), client.open()
    client.streams.cancel(gone, CancelReason.STOP_TEXT)
    client.streams.receive([(done, LOST)])
    client.streams.cancel(done, CancelReason.STOP_TEXT)
    client.streams.receive([(gone, ACCEPTED), (gone, LOST), (done, ACCEPTED)])
    assert (cancelled.events, ended.events) == ([], [LOST])
    assert client.cancels == [(gone, CancelReason.STOP_TEXT)]
    assert (client.streams.unknown_events, client.faults) == (0, [])


def test_a_session_that_ends_fails_all_streams_even_if_they_begin_others_meanwhile() -> None:
    client = Client()
    again = Recorder()
    first = client.streams.open(lambda _: None, 0)

    def resubmit(_: Event) -> None:
        client.streams.open(again, 0)

    client.streams.open(resubmit, 0)
    client.streams.lose(LOST)
    assert again.events == []
    client.streams.receive([(first + 2, ACCEPTED)])
    assert again.events == [ACCEPTED]
