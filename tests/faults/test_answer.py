"""Equal answers have one form, however they were cut into pieces; others do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.faults.answer import Answer, streamed, tokens_in

DONE = "data: [DONE]\n\n"


def chunk(delta: dict[str, Any], index: int = 0, **more: Any) -> str:
    choice = {"index": index, "delta": delta, "finish_reason": None, **more}
    return f"data: {json.dumps({'id': str(index), 'choices': [choice]})}\n\n"


def read(*frames: str) -> Answer:
    return streamed(200, "".join(frames))


ROLE, END = chunk({"role": "assistant", "content": ""}), chunk({}, finish_reason="stop")


def said(texts: Sequence[str]) -> list[str]:
    return [chunk({"content": text}) for text in texts]


def test_pieces_names_and_heartbeats_make_no_difference() -> None:
    one = read(ROLE, *said(["a", "b", "c"]), END, DONE)
    assert one == read(ROLE, *said(["ab"]), ": keep-alive\n\n", *said(["c"]), END, DONE)
    assert one.complete


def test_choices_may_take_turns_in_any_order() -> None:
    mixed = [chunk({"content": text}, index) for text, index in (("a", 0), ("x", 1), ("b", 0))]
    assert read(*mixed) == read(mixed[1], mixed[0], mixed[2])


@pytest.mark.parametrize(
    "frames",
    [
        [ROLE, *said(["a", "b", "b", "c"]), END, DONE],
        [ROLE, *said(["a", "c"]), END, DONE],
        [ROLE, *said(["a", "b", "c"]), END, END, DONE],
        [ROLE, ROLE, *said(["a", "b", "c"]), END, DONE],
        [ROLE, *said(["a", "b"]), END, *said(["c"]), DONE],
        [ROLE, *said(["a", "b", "c"]), END, DONE, DONE],
        [ROLE, *said(["a", "b", "c"]), END],
        [ROLE, *said(["a", "b", "c"]), DONE],
    ],
)
def test_what_is_lost_repeated_or_moved_makes_a_difference(frames: list[str]) -> None:
    assert read(*frames) != read(ROLE, *said(["a", "b", "c"]), END, DONE)


def test_a_stream_without_its_end_is_not_complete() -> None:
    assert not read(ROLE, *said(["a"]), END).complete
    start = 'event: message_start\ndata: {"type":"message_start","message":{"id":"1"}}\n\n'
    stop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    assert not read(start).complete
    assert read(start, stop).complete


def test_tokens_are_counted_in_whole_frames_alone() -> None:
    named = chunk({"content": "a"}, token_ids=[1, 2])
    assert tokens_in(ROLE + named + named) == 4
    assert tokens_in(ROLE + named + named[:-1]) == 2
