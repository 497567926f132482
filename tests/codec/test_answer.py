"""Answers under events that come in any portions, and under an engine that breaks the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.answer import Answer, AnswerTerms
from services.codec.conversation import Conversation, Tool, ToolChoice
from services.codec.events import EndReason, Finish, OutputEvent, Start, TextDelta, ToolStart, Usage
from services.codec.output.families import PLAIN, SMOLLM2
from services.codec.outputs import Outputs
from services.codec.request import Ending, Request
from services.shared.errors import Code, Internal, ServiceError
from services.shared.stream import events as stream
from tests.codec_bed import BedMaker

ACCEPTED = stream.Accepted(prompt_tokens=9, cached_tokens=stream.CachedTokens(host=4), seed=1)
TEXT = "a b STOP c 日本 STOP d"


def finished(count: int) -> stream.Finished:
    usage = stream.Usage(prompt_tokens=9, cached_tokens=4, completion_tokens=count)
    return stream.Finished(reason=stream.FinishReason.MAX_TOKENS, usage=usage)


def answer_of(beds: BedMaker, *stop: str, fills_context: bool = False) -> Answer:
    request = Request(model="m", prompt=Conversation(()), ending=Ending(stop=stop))
    cursors = Outputs(beds.encoder.tokenizer, PLAIN).cursors(request, [[1]])
    return Answer(cursors, AnswerTerms(fills_context=[fills_context]))


def of_one(*events: stream.Event) -> list[tuple[int, stream.Event]]:
    return [(0, event) for event in events]


def told(events: list[OutputEvent]) -> tuple[str, list[OutputEvent]]:
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, [event for event in events if not isinstance(event, TextDelta)]


@given(cuts=st.lists(st.integers(1, 4), max_size=30), stops=st.sampled_from([(), ("STOP",)]))
def test_answer_does_not_depend_on_portions(
    beds: BedMaker, cuts: list[int], stops: tuple[str, ...]
) -> None:
    ids = beds.encoder.encode_text(TEXT)
    portions: list[list[stream.Event]] = [[ACCEPTED]]
    at = 0
    for cut in [*cuts, len(ids)]:
        if at < len(ids):
            portions.append([stream.Tokens(at, ids[at : at + cut])])
            at = min(at + cut, len(ids))
    portions.append([finished(len(ids))])
    at_once = answer_of(beds, *stops).take(
        of_one(*(event for portion in portions for event in portion))
    )
    answer = answer_of(beds, *stops)
    piecewise: list[OutputEvent] = []
    for portion in portions:
        if not answer.is_complete:
            piecewise += answer.take(of_one(*portion))
    assert told(piecewise) == told(at_once)
    assert told(piecewise)[0] == (TEXT if not stops else "a b ")


def test_events_have_the_documented_order(beds: BedMaker) -> None:
    ids = beds.encoder.encode_text("hello")
    tokens = stream.Tokens(0, ids)
    assert answer_of(beds).take(of_one(ACCEPTED, tokens, finished(len(ids)))) == [
        Start(prompt_tokens=9, cached_tokens=4),
        TextDelta("hello"),
        Finish(reason=EndReason.MAX_TOKENS),
        Usage(prompt_tokens=9, cached_tokens=4, completion_tokens=len(ids)),
    ]


def test_a_generation_that_went_on_elsewhere_is_one_answer(beds: BedMaker) -> None:
    """Continued before its first token, it is accepted twice; the first counts."""
    ids = beds.encoder.encode_text("hello")
    again = replace(ACCEPTED, cached_tokens=stream.CachedTokens(device=9), routed="elsewhere")
    end = replace(finished(len(ids)), timeline=stream.Timeline(continuations=2))
    answer = answer_of(beds)
    told = [
        event
        for part in (ACCEPTED, again, stream.Tokens(0, ids[:1]), stream.Tokens(1, ids[1:]), end)
        for event in answer.take(of_one(part))
    ]
    assert "".join(event.text for event in told if isinstance(event, TextDelta)) == "hello"
    assert [event for event in told if not isinstance(event, TextDelta)] == [
        Start(prompt_tokens=9, cached_tokens=4),
        Finish(reason=EndReason.MAX_TOKENS),
        Usage(prompt_tokens=9, cached_tokens=4, completion_tokens=len(ids)),
    ]
    assert answer.figures()["continuations"] == 2
    assert answer.routed == ""


def test_limit_at_the_end_of_the_context_is_a_full_context(beds: BedMaker) -> None:
    events = answer_of(beds, fills_context=True).take(of_one(ACCEPTED, finished(0)))
    assert Finish(reason=EndReason.CONTEXT_FULL) in events


def test_second_acceptance_is_not_told(beds: BedMaker) -> None:
    assert len(answer_of(beds).take(of_one(ACCEPTED, ACCEPTED))) == 1


def test_tokens_before_acceptance_are_the_engines_fault(beds: BedMaker) -> None:
    with pytest.raises(Internal):
        answer_of(beds).take(of_one(stream.Tokens(0, [5])))


def test_failure_after_text_keeps_the_text(beds: BedMaker) -> None:
    answer = answer_of(beds)
    answer.take(of_one(ACCEPTED))
    failed = stream.Failed(code=Code.DATA_LOSS, message="10.0.0.1 lied")
    events = answer.take(of_one(stream.Tokens(0, beds.encoder.encode_text("so far")), failed))
    assert events == [TextDelta("so far")]
    assert isinstance(answer.failure, Internal)
    assert answer.failure.message == "internal error"


def test_text_withheld_for_a_stop_string_comes_out_at_the_end(beds: BedMaker) -> None:
    answer = answer_of(beds, "STOP!")
    ids = beds.encoder.encode_text("and STOP")
    text, _ = told(answer.take(of_one(ACCEPTED, stream.Tokens(0, ids), finished(len(ids)))))
    assert text == "and STOP"


def answer_with(beds: BedMaker, choices: int, **request: Any) -> Answer:
    asked = Request(model="m", prompt=Conversation(()), choices=choices, **request)
    cursors = Outputs(beds.encoder.tokenizer, PLAIN).cursors(asked, [[1]])
    return Answer(cursors, AnswerTerms(fills_context=[False]))


def test_outputs_to_one_prompt_are_one_answer(beds: BedMaker) -> None:
    answer = answer_with(beds, 3, ending=Ending(stop=("STOP",)))
    ids = [beds.encoder.encode_text(text) for text in ("zero", "one STOP more", "two")]
    tokens = [(choice, stream.Tokens(0, ids[choice])) for choice in (2, 0, 1)]
    events = answer.take([(2, ACCEPTED), tokens[0], (0, ACCEPTED), (1, ACCEPTED)])
    assert events == [Start(prompt_tokens=9, cached_tokens=4), TextDelta("two", 2)]
    assert answer.take(tokens[1:]) == [
        TextDelta("zero", 0),
        TextDelta("one ", 1),
        Finish(reason=EndReason.STOP_STRING, stop="STOP", choice=1),
    ]
    assert answer.stopped() == [1]
    assert answer.stopped() == []
    assert answer.take([(2, finished(5)), (1, finished(9))]) == [
        Finish(reason=EndReason.MAX_TOKENS, choice=2)
    ]
    assert not answer.is_complete
    count = 5 + 6 + len(beds.encoder.encode_text("one STOP"))
    assert answer.take([(0, finished(6))]) == [
        Finish(reason=EndReason.MAX_TOKENS, choice=0),
        Usage(prompt_tokens=9, cached_tokens=4, completion_tokens=count),
    ]
    assert answer.is_complete


def test_one_failure_fails_the_answer(beds: BedMaker) -> None:
    answer = answer_with(beds, 2)
    failed = stream.Failed(code=Code.UNAVAILABLE, message="gone")
    with pytest.raises(ServiceError):
        answer.take([(0, ACCEPTED), (1, failed)])
    answer = answer_with(beds, 2)
    answer.take([(0, ACCEPTED), (1, ACCEPTED)])
    assert answer.take([(1, failed)]) == []
    assert answer.failure is not None


def test_start_waits_for_each_prompt(beds: BedMaker) -> None:
    asked = Request(model="m", prompt=Conversation(()), choices=2)
    cursors = Outputs(beds.encoder.tokenizer, PLAIN).cursors(asked, [[1], [2]])
    answer = Answer(cursors, AnswerTerms(fills_context=[False, True]))
    assert answer.take([(0, ACCEPTED), (1, ACCEPTED)]) == []
    assert answer.take([(3, ACCEPTED)]) == [Start(prompt_tokens=18, cached_tokens=8)]
    assert answer.take([(2, ACCEPTED), (2, finished(1)), (0, finished(1))]) == [
        Finish(reason=EndReason.CONTEXT_FULL, choice=2),
        Finish(reason=EndReason.MAX_TOKENS, choice=0),
    ]


CALL = '<tool_call>[{"name": "f", "arguments": {}}'


@pytest.mark.parametrize(
    ("output", "reason", "expected"),
    [
        (CALL + "]</tool_call>", stream.FinishReason.END_OF_TEXT, EndReason.TOOL_CALLS),
        (CALL + "]</tool_call>", stream.FinishReason.MAX_TOKENS, EndReason.TOOL_CALLS),
        (CALL, stream.FinishReason.END_OF_TEXT, EndReason.TOOL_CALLS),
        (CALL[:-2], stream.FinishReason.MAX_TOKENS, EndReason.MAX_TOKENS),
        (CALL + "," + CALL[12:-2], stream.FinishReason.MAX_TOKENS, EndReason.MAX_TOKENS),
        (CALL[:-2], stream.FinishReason.END_OF_TEXT, EndReason.END_OF_TEXT),
        ("words", stream.FinishReason.END_OF_TEXT, EndReason.END_OF_TEXT),
    ],
)
def test_answer_ends_for_its_calls_where_it_has_any(
    beds: BedMaker, output: str, reason: stream.FinishReason, expected: EndReason
) -> None:
    prompt = Conversation((), (Tool("f", None, {}),))
    cursors = Outputs(beds.encoder.tokenizer, SMOLLM2).cursors(
        Request(model="m", prompt=prompt), [[1]]
    )
    answer = Answer(cursors, AnswerTerms(fills_context=[False]))
    usage = stream.Usage(prompt_tokens=9, cached_tokens=4, completion_tokens=7)
    tokens = stream.Tokens(0, beds.encoder.encode_text(output))
    events = answer.take(of_one(ACCEPTED, tokens, stream.Finished(reason=reason, usage=usage)))
    assert [event.reason for event in events if isinstance(event, Finish)] == [expected]


def test_second_call_is_not_waited_for_where_one_is_wanted(beds: BedMaker) -> None:
    one = ToolChoice(parallel=False)
    prompt = Conversation((), (Tool("f", None, {}),), one)
    cursors = Outputs(beds.encoder.tokenizer, SMOLLM2).cursors(
        Request(model="m", prompt=prompt), [[1]]
    )
    answer = Answer(cursors, AnswerTerms(fills_context=[False]))
    tokens = stream.Tokens(0, beds.encoder.encode_text(CALL + "," + CALL[12:]))
    events = answer.take(of_one(ACCEPTED, tokens))
    assert Finish(reason=EndReason.TOOL_CALLS) in events
    assert sum(isinstance(event, ToolStart) for event in events) == 1
    assert answer.stopped() == [0]
