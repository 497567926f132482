"""Whatever comes out of a generation, a stream and a whole answer say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event
from hypothesis import given, settings
from hypothesis import strategies as st

from services.codec.conversation import Conversation, Role, Text, Turn
from services.codec.events import (
    EndReason,
    Finish,
    Heartbeat,
    Likelihood,
    OutputEvent,
    ReasoningDelta,
    ReleasedToken,
    Start,
    TextDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
    Usage,
)
from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.completions.protocol import COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.reply import Reply
from services.codec.protocols.responses.protocol import RESPONSES
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.request import Delivery, Request
from tests.examples import examples

EXAMPLES = examples(2500)

USAGE = Usage(prompt_tokens=9, cached_tokens=4, completion_tokens=7, reasoning_tokens=2)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
CUTS = st.lists(st.integers(0, 30), max_size=4)
VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | st.booleans() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(ends)]


@st.composite
def said(draw: st.DrawFn) -> list[OutputEvent]:
    kinds: list[type[TextDelta | ReasoningDelta]] = [TextDelta, ReasoningDelta]
    kind = draw(st.sampled_from(kinds))
    token = ReleasedToken(
        token_id=1, likelihood=Likelihood(token_id=1, bytes=b"x", logprob=float("-inf"))
    )
    tokens = draw(st.sampled_from([(), (token,)]))
    return [kind(piece, tokens=tokens) for piece in pieces(draw(WORDS), draw(CUTS))]


@st.composite
def called(draw: st.DrawFn, index: int) -> list[OutputEvent]:
    """A call that is whole, or one whose arguments break off or go wrong somewhere."""
    arguments = json.dumps(draw(st.dictionaries(WORDS, VALUES, max_size=3)), ensure_ascii=False)
    is_valid = draw(st.booleans())
    sent = arguments if is_valid else arguments[: draw(st.integers(0, len(arguments)))]
    told = draw(st.integers(0, len(sent))) if is_valid else len(sent)
    fragments = pieces(sent[:told], draw(CUTS))
    written = arguments if is_valid else sent + draw(st.sampled_from(["", "oops"]))
    return [
        ToolStart(index=index, call_id=f"call_{index}", name="f"),
        *(ToolArguments(index=index, fragment=fragment) for fragment in fragments),
        ToolEnd(index=index, arguments=written, valid=is_valid),
    ]


@st.composite
def answers(draw: st.DrawFn, calls: bool = True) -> list[OutputEvent]:
    events: list[OutputEvent] = [Start(prompt_tokens=9, cached_tokens=4)]
    index = 0
    for is_call in draw(st.lists(st.booleans(), max_size=4)):
        if is_call and calls:
            events += draw(called(index))
            index += 1
        else:
            events += draw(said())
        if draw(st.booleans()):
            events.append(Heartbeat())
    reason = draw(st.sampled_from(EndReason))
    stop = "X" if reason is EndReason.STOP_STRING else None
    return [*events, Finish(reason=reason, stop=stop), USAGE]


def reply(top_logprobs: int | None = None) -> Reply:
    request = Request(
        model="m",
        prompt=Conversation((Turn(Role.USER, (Text("hi"),)),)),
        delivery=Delivery(stream=True, usage_at_end=True, top_logprobs=top_logprobs),
    )
    return Reply(reply_id="0" * 24, request_id="req_1", created=1, request=request)


def both(
    protocol: WireProtocol, events: Sequence[OutputEvent], told: Reply
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    stream = protocol.stream(told)
    frames = [frame for event in events for frame in stream.frames(event)]
    return list(data_of(frames)), json.loads(protocol.whole(told, events))


def data_of(frames: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for frame in frames:
        assert frame.endswith(b"\n\n")
        for line in frame.decode().split("\n"):
            if line.startswith("data: {"):
                yield json.loads(line.removeprefix("data: "), parse_constant=refuse)


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def accumulated(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """As clients of Chat Completions do: strings are appended, the rest is overwritten."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    rest: dict[str, Any] = {}
    logprobs: list[Any] = []
    for chunk in chunks:
        if not chunk["choices"]:
            rest["usage"] = chunk["usage"]
            continue
        (choice,) = chunk["choices"]
        for name, value in choice["delta"].items():
            if name != "tool_calls":
                message[name] = message.get(name, "") + value
                continue
            for call in value:
                known = calls.setdefault(call["index"], {"function": {"arguments": ""}})
                function = call.get("function", {})
                known["function"]["arguments"] += function.pop("arguments", "")
                known["function"] |= function
                known |= {key: call[key] for key in ("id", "type") if key in call}
        rest["finish_reason"] = choice["finish_reason"]
        logprobs += (choice["logprobs"] or {}).get("content", [])
    if calls:
        message["tool_calls"] = [calls[at] for at in sorted(calls)]
        message["content"] = message["content"] or None
    return {"message": message, "logprobs": logprobs, **rest}


@settings(max_examples=EXAMPLES)
@given(answers(), st.sampled_from([None, 0, 2]))
def test_chat_completions(events: list[OutputEvent], top: int | None) -> None:
    chunks, whole = both(CHAT_COMPLETIONS, events, reply(top))
    streamed = accumulated(chunks)
    (choice,) = whole["choices"]
    assert choice["message"].pop("refusal") is None
    assert streamed["message"] == choice["message"]
    assert streamed["finish_reason"] == choice["finish_reason"]
    assert streamed["usage"] == whole["usage"]
    assert streamed["logprobs"] == (choice["logprobs"] or {"content": []})["content"]
    assert (choice["finish_reason"] == "tool_calls") <= ("tool_calls" in choice["message"])


@settings(max_examples=EXAMPLES)
@given(answers(calls=False), st.sampled_from([None, 0, 2]))
def test_completions(events: list[OutputEvent], top: int | None) -> None:
    chunks, whole = both(COMPLETIONS, events, reply(top))
    (choice,) = whole["choices"]
    told = [chunk["choices"][0] for chunk in chunks[:-1]]
    assert "".join(part["text"] for part in told) == choice["text"]
    assert told[-1]["finish_reason"] == choice["finish_reason"]
    assert chunks[-1]["usage"] == whole["usage"]
    if top is not None:
        lists = [part["logprobs"] for part in told if part["logprobs"]]
        for name, values in choice["logprobs"].items():
            # Where a token's bytes are not those of its text there is no true place for it.
            if name != "text_offset":
                assert [value for part in lists for value in part[name]] == values


@settings(max_examples=EXAMPLES)
@given(answers())
def test_messages(events: list[OutputEvent]) -> None:
    """The official client's own accumulation: it parses the fragments of a call strictly."""
    told, whole = both(MESSAGES, events, reply())
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in told:
        if event["type"] != "ping":
            typed: Any = event
            snapshot = accumulate_event(event=typed, current_snapshot=snapshot, json_bufs=buffers)
    streamed = snapshot.to_dict()
    assert [block["type"] for block in streamed["content"]] == [
        block["type"] for block in whole["content"]
    ]
    for one, other in zip(streamed["content"], whole["content"], strict=True):
        names = {"text", "thinking", "signature", "input", "name", "id"} & other.keys()
        assert {name: one[name] for name in names} == {name: other[name] for name in names}
    assert streamed["stop_reason"] == whole["stop_reason"]
    assert streamed["usage"]["output_tokens"] == whole["usage"]["output_tokens"]
    starts = [event["index"] for event in told if event["type"] == "content_block_start"]
    assert starts == list(range(len(starts)))


@settings(max_examples=EXAMPLES)
@given(answers())
def test_responses(events: list[OutputEvent]) -> None:
    told, whole = both(RESPONSES, events, reply())
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    last = told[-1]["response"]
    assert last == whole
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert [without_status(item) for item in done] == [
        without_status(item) for item in whole["output"]
    ]
    deltas: dict[str, str] = {}
    for event in told:
        if event["type"].endswith(".delta"):
            deltas[event["item_id"]] = deltas.get(event["item_id"], "") + event["delta"]
    for item in whole["output"]:
        text = item["arguments"] if "arguments" in item else item["content"][0]["text"]
        assert deltas.get(item["id"], "") == text


def without_status(item: dict[str, Any]) -> dict[str, Any]:
    """An item that ends before its response does cannot know that a limit cut the answer off."""
    return {name: value for name, value in item.items() if name != "status"}
