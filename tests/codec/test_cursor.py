"""Text, IDs and likelihoods leave together, whatever portions the tokens come in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.codec.conversation import Conversation, Tool
from services.codec.cursor import Cursor, CursorEvent
from services.codec.events import (
    ReasoningDelta,
    ReleasedToken,
    TextDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
)
from services.codec.output.families import HERMES, PLAIN
from services.codec.output.family import Family
from services.codec.outputs import Outputs
from services.codec.request import Delivery, Ending, Request
from services.codec.tokenizer import Tokenizer
from services.shared.stream.events import Logprobs
from tests.codec.small_model import added, byte_level, write

MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|end|>")
TOOLS = (Tool("f", None, {}),)
CALL = '{"name": "f", "arguments": {"x": "é"}}'


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    spoken = byte_level()
    spoken.add_tokens(added(MARKERS))
    return Tokenizer(write(tmp_path_factory.mktemp("model"), spoken))


@pytest.fixture(scope="module")
def as_text(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Of its markers only the end is a token."""
    spoken = byte_level()
    spoken.add_tokens(added(MARKERS[-1:]))
    return Tokenizer(write(tmp_path_factory.mktemp("model"), spoken))


def cursor(tokenizer: Tokenizer, family: Family, **request: Any) -> Cursor:
    tools = request.pop("tools", ())
    asked = Request(model="m", prompt=Conversation((), tools), **request)
    return Outputs(tokenizer, family).cursors(asked, [[0]])[0]


def logprobs_of(ids: Sequence[int]) -> Logprobs:
    """Of each token its own, and of two others."""
    return Logprobs(
        chosen=[-float(token) for token in ids],
        top_token_ids=[other for token in ids for other in (token, 1)],
        top_logprobs=[value for token in ids for value in (-float(token), -9.0)],
    )


def groups_of(ids: list[int], seed: int) -> list[list[int]]:
    rng = random.Random(seed)  # noqa: S311 no secret
    cuts = sorted(rng.randrange(len(ids) + 1) for _ in range(rng.randrange(8)))
    return [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)], strict=True)]


def run(of: Cursor, groups: list[list[int]]) -> list[CursorEvent]:
    events = [event for group in groups for event in of.push(group, logprobs_of(group))]
    return events + of.finish()


Told = tuple[str, str, tuple[ReleasedToken, ...]]


def told(events: list[CursorEvent]) -> list[Told]:
    """Neighbours of one kind are one."""
    out: list[Told] = []
    for event in events:
        match event:
            case TextDelta(text=text, tokens=tokens) | ReasoningDelta(text=text, tokens=tokens):
                item = (type(event).__name__, text, tokens)
            case ToolArguments(fragment=text) | ToolStart(name=text) | ToolEnd(arguments=text):
                item = (type(event).__name__, text, ())
        if out and out[-1][0] == item[0] != "ToolStart":
            out[-1] = (item[0], out[-1][1] + item[1], out[-1][2] + item[2])
        else:
            out.append(item)
    return out


_parts = st.lists(
    st.sampled_from(
        [
            *MARKERS,
            "a",
            " ",
            "\n",
            "STOP",
            "ST",
            "é",
            "😀",
            "\ufffd",
            CALL,
            CALL[:20],
            "the user said",
        ]
    ),
    max_size=10,
)
WISHES = [
    Delivery(),
    Delivery(token_ids=True),
    Delivery(top_logprobs=2),
    Delivery(token_ids=True, top_logprobs=2),
]


_requests = st.fixed_dictionaries(
    {
        "ending": st.builds(
            Ending,
            stop=st.sampled_from([(), ("STOP",), ("TOP", "S\n")]),
            include_stop=st.booleans(),
        ),
        "delivery": st.sampled_from(WISHES),
        "tools": st.sampled_from([TOOLS, ()]),
    }
)


@pytest.mark.parametrize("family", [HERMES, PLAIN])
@pytest.mark.parametrize("vocabulary", ["tokenizer", "as_text"])
@settings(max_examples=300, deadline=None)
@given(parts=_parts, seed=st.integers(0, 2**32), terms=_requests, data=st.data())
def test_portions_change_nothing(
    request: pytest.FixtureRequest, vocabulary: str, family: Family, **drawn: Any
) -> None:
    spoken, terms = request.getfixturevalue(vocabulary), drawn["terms"]
    ids = [token for part in drawn["parts"] for token in spoken.encode_reference(part)]
    # An output may break off anywhere, also in a character.
    ids = ids[: len(ids) - drawn["data"].draw(st.integers(0, min(3, len(ids))))]
    whole, cut_up = (cursor(spoken, family, **terms) for _ in range(2))
    at_once = told(run(whole, [ids]))
    assert told(run(cut_up, groups_of(ids, drawn["seed"]))) == at_once
    assert (cut_up.tokens, cut_up.reasoning_tokens) == (whole.tokens, whole.reasoning_tokens)
    assert cut_up.stop == whole.stop
    check_tokens(at_once, terms["delivery"], ids[: whole.tokens])
    if whole.stop is not None and not terms["ending"].include_stop:
        assert whole.stop not in "".join(text for kind, text, _ in at_once if kind == "TextDelta")


def check_tokens(at_once: list[Told], wish: Delivery, ids: list[int]) -> None:
    """IDs of all tokens where they are wanted; likelihoods are those of their tokens."""
    released = [token for _, _, tokens in at_once for token in tokens]
    if wish.token_ids:
        assert [token.token_id for token in released] == ids
    elif wish.top_logprobs is None:
        assert not released
    likely = [token.likelihood for token in released if token.likelihood]
    assert all(likelihood.logprob == -float(likelihood.token_id) for likelihood in likely)


@given(parts=_parts)
def test_bytes_of_likely_tokens_are_the_text(tokenizer: Tokenizer, parts: list[str]) -> None:
    ids = [token for part in parts for token in tokenizer.encode_reference(part)]
    (of,) = [cursor(tokenizer, PLAIN, delivery=Delivery(top_logprobs=1))]
    for event in run(of, [[token] for token in ids]):
        assert isinstance(event, TextDelta)
        likely = [token.likelihood for token in event.tokens]
        spelled = b"".join(likelihood.bytes for likelihood in likely if likelihood is not None)
        assert spelled.decode() == event.text


@given(parts=_parts, seed=st.integers(0, 2**32))
def test_plain_text_is_the_same_token_by_token(
    tokenizer: Tokenizer, parts: list[str], seed: int
) -> None:
    ids = [token for part in parts for token in tokenizer.encode_reference(part)]
    plain, slow = cursor(tokenizer, PLAIN), cursor(tokenizer, PLAIN, ending=Ending(stop=("\0",)))
    assert told(run(plain, groups_of(ids, seed))) == told(run(slow, [ids]))
    assert (plain.tokens, plain.digest) == (slow.tokens, slow.digest)


def test_tokens_of_reasoning_are_counted_from_marker_to_marker(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_reference("<think>ab</think>c")
    of = cursor(tokenizer, HERMES)
    assert [type(event) for event in run(of, [ids])] == [ReasoningDelta, TextDelta]
    assert of.reasoning_tokens == len(tokenizer.encode_reference("ab")) + 2
    assert of.tokens == len(ids)


def test_prompt_that_opens_reasoning_begins_in_it(tokenizer: Tokenizer) -> None:
    request = Request(model="m", prompt=Conversation(()))
    for tail, kind in (("<think>\n", ReasoningDelta), ("<think>\n\n</think>\n\n", TextDelta)):
        prompt = tokenizer.encode_reference(f"<think>old<|end|>the user{tail}")
        of = Outputs(tokenizer, HERMES).cursors(request, [prompt])[0]
        assert isinstance(of.push(tokenizer.encode_reference("ab"))[0], kind)


def test_stop_strings_count_in_visible_text_only(tokenizer: Tokenizer) -> None:
    output = f"<think>STOP</think>a<tool_call>{CALL.replace('é', 'STOP')}</tool_call>b STOP c"
    of = cursor(tokenizer, HERMES, tools=TOOLS, ending=Ending(stop=("STOP",)))
    events = told(run(of, [tokenizer.encode_reference(output)]))
    assert [text for _, text, _ in events] == [
        *("STOP", "a", "f", '{"x": "STOP"}', '{"x": "STOP"}', "b ")
    ]
    assert of.stop == "STOP"


def test_blanks_before_a_call_are_dropped_and_others_stay(tokenizer: Tokenizer) -> None:
    call = tokenizer.encode_reference(f"so \n\n<tool_call>{CALL}</tool_call>")
    assert told(run(cursor(tokenizer, HERMES, tools=TOOLS), [call]))[0][1] == "so"
    words = tokenizer.encode_reference(" so \n\n")
    assert told(run(cursor(tokenizer, HERMES, tools=TOOLS), [words]))[0][1] == " so \n\n"


def test_markers_are_shown_where_calls_are_not_read(tokenizer: Tokenizer) -> None:
    text = f"<tool_call>{CALL}</tool_call>"
    ids = [*tokenizer.encode_reference(text + "<|end|>")]
    assert told(run(cursor(tokenizer, HERMES), [ids]))[0][1] == text


def test_literal_markers_are_text(tokenizer: Tokenizer) -> None:
    text = f"<tool_call>{CALL}</tool_call>"
    ids = tokenizer.encode_plainly(text)
    assert told(run(cursor(tokenizer, HERMES, tools=TOOLS), [ids]))[0][:2] == ("TextDelta", text)
