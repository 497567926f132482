"""Outputs past a filter: whatever portions they come in, nothing of what is blocked is told."""

from __future__ import annotations

import random
from collections.abc import Sequence

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
from services.codec.filtering.patterns import PatternFilter
from services.codec.filtering.rules_file import Rule
from services.codec.filtering.screens import ScreenMaker
from services.codec.output.families import HERMES, PLAIN
from services.codec.outputs import Outputs
from services.codec.request import Delivery, Ending, Request
from services.codec.tokenizer import Tokenizer
from services.shared.stream.events import Logprobs
from tests.codec.small_model import added, byte_level, write

MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|end|>")
RULES = (
    Rule(name="word", words=("bad",)),
    Rule(name="part", words=("orse",), patterns=("[0-9]{3}-x",), whole_words=False),
)
MAKER = ScreenMaker(content_filter=lambda: PatternFilter(RULES), limit_s=60.0)
CALL = '{"name": "f", "arguments": {"x": "b\\u0061d"}}'
PARTS = (
    *MARKERS,
    *("ba", "d", "bad", " ", "wo", "rse", "x", "é", "STOP", "12", "3-", "!"),
    *(CALL, CALL[:30], CALL.replace("b\\u0061d", "fine")),
)
Told = tuple[str, str, tuple[object, ...]]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    spoken = byte_level()
    spoken.add_tokens(added(MARKERS))
    return Tokenizer(write(tmp_path_factory.mktemp("model"), spoken))


def cursor(tokenizer: Tokenizer, request: Request) -> Cursor:
    return Outputs(tokenizer, HERMES, MAKER).cursors(request, [[0]])[0]


def groups_of(ids: list[int], seed: int) -> list[list[int]]:
    rng = random.Random(seed)  # noqa: S311 no secret
    cuts = sorted(rng.randrange(len(ids) + 1) for _ in range(rng.randrange(8)))
    return [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)], strict=True)]


def run(of: Cursor, groups: Sequence[Sequence[int]]) -> list[CursorEvent]:
    events: list[CursorEvent] = []
    for group in groups:
        logprobs = Logprobs(chosen=[-float(token) for token in group])
        events += of.push(group, logprobs)
    return events + of.finish()


def told(events: Sequence[CursorEvent]) -> list[Told]:
    """Neighbours of one kind are one; IDs of calls are new each time."""
    out: list[Told] = []
    for event in events:
        match event:
            case TextDelta(text=text, tokens=tokens) | ReasoningDelta(text=text, tokens=tokens):
                item: Told = (type(event).__name__, text, tokens)
            case ToolArguments(fragment=text) | ToolStart(name=text) | ToolEnd(arguments=text):
                item = (type(event).__name__, text, ())
        if out and out[-1][0] == item[0] != "ToolStart":
            _, before, tokens_before = out.pop()
            item = (item[0], before + item[1], (*tokens_before, *item[2]))
        out.append(item)
    return out


_requests = st.builds(
    Request,
    model=st.just("m"),
    prompt=st.sampled_from([Conversation(()), Conversation((), (Tool("f", None, {}),))]),
    ending=st.sampled_from([Ending(), Ending(stop=("STOP", "se"))]),
    delivery=st.sampled_from([Delivery(), Delivery(token_ids=True, top_logprobs=0)]),
)


@settings(max_examples=200)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=10),
    seed=st.integers(0, 2**32),
    request_=_requests,
)
def test_portions_change_nothing(
    tokenizer: Tokenizer, parts: list[str], seed: int, request_: Request
) -> None:
    ids = [token for part in parts for token in tokenizer.encode_reference(part)]
    whole, cut_up = cursor(tokenizer, request_), cursor(tokenizer, request_)
    at_once = told(run(whole, [ids]))
    assert told(run(cut_up, groups_of(ids, seed))) == at_once
    assert (cut_up.tokens, cut_up.blocked_by, cut_up.stop) == (
        whole.tokens,
        whole.blocked_by,
        whole.stop,
    )


@settings(max_examples=200)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=10), request_=_requests)
def test_no_text_has_what_is_blocked(
    tokenizer: Tokenizer, parts: list[str], request_: Request
) -> None:
    ids = [token for part in parts for token in tokenizer.encode_reference(part)]
    output = cursor(tokenizer, request_)
    events = run(output, [[token] for token in ids])
    kinds: dict[str, str] = {}
    for kind, text, _ in told(events):
        kinds[kind] = (
            kinds.get(kind, "") + ("\n" if kind in {"ToolEnd", "ToolStart"} else "") + text
        )
    for text in kinds.values():
        said = text.replace("\\u0061", "a")
        assert "orse" not in said
        assert "bad" not in said.replace("!", " ").split()
    if output.blocked_by is not None:
        assert output.blocked_by in {"word", "part"}


def test_tokens_of_withheld_text_follow_it(tokenizer: Tokenizer) -> None:
    request = Request(
        model="m", prompt=Conversation(()), delivery=Delivery(token_ids=True, top_logprobs=0)
    )
    output = Outputs(tokenizer, PLAIN, MAKER).cursors(request, [[0]])[0]
    ids = [tokenizer.encode_reference(char)[0] for char in "a ba! "]
    shown = [told(output.push([token], Logprobs(chosen=[-1.0]))) for token in ids]
    texts = [[text for _, text, _ in deltas] for deltas in shown]
    assert texts == [["a"], [" "], [], [], [], ["ba! "]]
    tokens = [token for deltas in shown for _, _, released in deltas for token in released]
    assert [token.token_id for token in tokens if isinstance(token, ReleasedToken)] == ids


def test_tokens_of_blocked_text_are_not_told(tokenizer: Tokenizer) -> None:
    request = Request(
        model="m", prompt=Conversation(()), delivery=Delivery(token_ids=True, top_logprobs=0)
    )
    output = cursor(tokenizer, request)
    ids = [tokenizer.encode_reference(char)[0] for char in "a bad."]
    events = run(output, [ids])
    assert told(events) == told(run(cursor(tokenizer, request), [ids[:2]]))
    assert (output.tokens, output.blocked_by) == (6, "word")
