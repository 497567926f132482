"""Answers under events that come in any portions, and under an engine that breaks the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.answer import Answer, AnswerTerms
from services.codec.conversation import Conversation
from services.codec.events import EndReason, Finish, OutputEvent, Start, TextDelta, Usage
from services.codec.output.families import PLAIN
from services.codec.outputs import Outputs
from services.codec.request import Ending, Request
from services.shared.errors import Code, Internal
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
