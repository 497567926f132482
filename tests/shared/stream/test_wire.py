"""What is sent is what is received."""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum

import pytest
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.rpc import code_pb2
from hypothesis import given
from hypothesis import strategies as st
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.shared.errors import Code, InvalidRequest
from services.shared.stream.event_wire import events_of, frame_of, response_of
from services.shared.stream.events import CancelReason, Event, FinishReason, Refused, Tokens
from services.shared.stream.generation import Constraint, Generation, PriorityClass
from services.shared.stream.generation_wire import generation_from, request_of
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.load_wire import load_from, load_of
from tests.shared.stream.strategies import generations, loads, refusals, stream_events, u64


@given(generations)
def test_a_generation_arrives_as_it_was_sent(generation: Generation) -> None:
    raw = request_of(generation).SerializeToString()
    assert generation_from(pb.GenerateRequest.FromString(raw)) == generation


@given(st.dictionaries(u64, stream_events, max_size=6), st.dictionaries(u64, refusals, max_size=2))
def test_a_frame_carries_the_events_of_each_stream_in_order(
    events: dict[int, list[Event]], refused: dict[int, Refused]
) -> None:
    sent: dict[int, list[Event | Refused]] = {
        stream_id: [*events.get(stream_id, []), *filter(None, [refused.get(stream_id)])]
        for stream_id in events | refused
    }
    frame = pb.StepFrame.FromString(frame_of(sent).SerializeToString())
    received: dict[int, list[Event | Refused]] = defaultdict(list)
    for stream_id, event in events_of(frame):
        received[stream_id].append(event)
    assert received == {stream_id: of for stream_id, of in sent.items() if of}


@given(loads)
def test_a_load_arrives_as_it_was_sent(load: Load) -> None:
    assert load_from(types.Load.FromString(load_of(load).SerializeToString())) == load


def test_a_state_that_is_not_known_takes_nothing() -> None:
    assert load_from(types.Load(state=types.ReplicaState.ValueType(99))).state == (
        ReplicaState.STARTING
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "prefix"),
    [
        (FinishReason, types.FinishReason, "FINISH_REASON_"),
        (PriorityClass, types.PriorityClass, "PRIORITY_CLASS_"),
        (ReplicaState, types.ReplicaState, "REPLICA_STATE_"),
        (CancelReason, pb.CancelReason, "CANCEL_REASON_"),
        (Code, code_pb2.Code, ""),
    ],
)
def test_enums_have_the_names_and_numbers_of_the_contract(
    ours: type[IntEnum], theirs: EnumTypeWrapper, prefix: str
) -> None:
    numbers = {f"{prefix}{member.name}": member.value for member in ours}
    unused = {f"{prefix}UNSPECIFIED", "OK"} - set(numbers)
    assert numbers == {name: number for name, number in theirs.items() if name not in unused}


def test_an_empty_constraint_is_no_constraint_and_an_empty_source_is_one() -> None:
    request = pb.GenerateRequest(prompt_ids=[1], constraint=types.Constraint())
    assert generation_from(request).constraint is None
    request.constraint.regex = ""
    assert isinstance(generation_from(request).constraint, Constraint)


@pytest.mark.parametrize(
    "frame",
    [
        pb.StepFrame(stream_ids=[1], first_positions=[0], counts=[2], token_ids=[5]),
        pb.StepFrame(stream_ids=[1], first_positions=[0], counts=[], token_ids=[]),
        pb.StepFrame(stream_ids=[], first_positions=[], counts=[], token_ids=[5]),
        pb.StepFrame(stream_ids=[1, 2], first_positions=[0], counts=[1], token_ids=[5]),
    ],
)
def test_columns_that_do_not_fit_are_refused(frame: pb.StepFrame) -> None:
    with pytest.raises(InvalidRequest, match="columns must fit together"):
        list(events_of(frame))


def test_a_finish_reason_that_is_not_known_is_refused() -> None:
    event = pb.StreamEvent(stream_id=1, finished=pb.Finished())
    with pytest.raises(InvalidRequest, match="finish reason 0"):
        list(events_of(pb.StepFrame(events=[event])))


def test_the_simple_door_sends_tokens_with_their_position() -> None:
    response = response_of(Tokens(3, [4, 5]))
    assert response == pb.GenerateResponse(tokens=pb.Tokens(first_position=3, token_ids=[4, 5]))
