"""What a filter blocks, as callers of each protocol see it, over a codec on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.codec.filtering.settings import ContentFilterSettings
from services.codec.request_record import Outcome, RequestRecord
from services.codec.settings import ServiceSettings
from services.shared.access import followed_file
from services.shared.config import BadConfig
from services.shared.stream.events import CancelReason
from services.shared.stream.generation import Generation
from tests.codec.filtering import plugins
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.scripted_engine import ScriptedEngine, Step
from tests.waiting import PATIENCE_S, until

RULES = """
rules:
- name: curse
  words: [damned fool]
- name: numbers
  patterns: ['[0-9]{3}-[0-9]{4}']
"""
SAID = "You are a Damned\nFool, call 555-1234."
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
COMPLETIONS = "/v1/completions"
TOOLS = [{"type": "function", "function": {"name": "note", "parameters": {"type": "object"}}}]

Change = Callable[[ServiceSettings], ServiceSettings]


def by(name: str, file: Path | None = None, timeout_s: float = 60.0) -> Change:
    wanted = ContentFilterSettings(name=name, file=file, timeout_s=timeout_s)
    return lambda settings: replace(settings, content_filter=wanted)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


Filtered = Callable[[str], AbstractAsyncContextManager[Bed]]


@pytest.fixture
def filtered(beds: BedMaker, rules: Path) -> Filtered:
    """Beds whose engine says a text, token by token, for ever."""

    @asynccontextmanager
    async def made(said: str) -> AsyncIterator[Bed]:
        def script(_: Generation) -> Sequence[Step]:
            ids = beds.encoder.encode_text(said)
            return [*([token] for token in ids), asyncio.Event()]

        async with beds.bed(beds.engine(script), by("patterns", rules)) as bed:
            yield bed

    return made


async def posted(bed: Bed, path: str, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=bed.url, timeout=PATIENCE_S) as client:
        return await client.post(path, json={"model": MODEL, **body})


def asked(path: str, text: str = "hi", **more: Any) -> dict[str, Any]:
    bodies: dict[str, dict[str, Any]] = {
        CHAT: {"messages": [{"role": "user", "content": text}]},
        MESSAGES: {"messages": [{"role": "user", "content": text}], "max_tokens": 50},
        RESPONSES: {"input": text},
        COMPLETIONS: {"prompt": text},
    }
    return bodies[path] | more


def events_of(response: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


async def test_chat_ends_with_content_filter(filtered: Filtered, beds: BedMaker) -> None:
    async with filtered(SAID) as bed:
        records: list[RequestRecord] = []
        bed.service.listeners.append(records.append)
        whole = (await posted(bed, CHAT, **asked(CHAT))).json()
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = events_of(await posted(bed, CHAT, **asked(CHAT, **options)))
        await until(lambda: len(bed.engine.cancels) == 2)
    (choice,) = whole["choices"]
    assert choice["finish_reason"] == "content_filter"
    assert choice["message"]["content"] == "You are a "
    text = "".join(part["delta"].get("content") or "" for c in chunks for part in c["choices"])
    assert text == "You are a "
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1] == (
        "content_filter"
    )
    assert chunks[-1]["usage"] == whole["usage"]
    # The comma makes it certain; what waits for marks is one token more.
    spoken = beds.encoder.encode_text(SAID)
    assert 5 < whole["usage"]["completion_tokens"] < len(spoken)
    assert set(bed.engine.cancels) == {CancelReason.STOP_TEXT}
    assert [record.account.filter_rules for record in records] == [["curse"], ["curse"]]
    assert {record.outcome for record in records} == {Outcome.FINISHED}


async def test_messages_ends_with_refusal(filtered: Filtered) -> None:
    async with filtered(SAID) as bed:
        whole = (await posted(bed, MESSAGES, **asked(MESSAGES))).json()
        events = events_of(await posted(bed, MESSAGES, **asked(MESSAGES, stream=True)))
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("refusal", None)
    assert [block["text"] for block in whole["content"]] == ["You are a "]
    (delta,) = [event for event in events if event["type"] == "message_delta"]
    assert delta["delta"]["stop_reason"] == "refusal"
    assert delta["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


async def test_responses_is_incomplete(filtered: Filtered) -> None:
    async with filtered(SAID) as bed:
        whole = (await posted(bed, RESPONSES, **asked(RESPONSES))).json()
        events = events_of(await posted(bed, RESPONSES, **asked(RESPONSES, stream=True)))
    assert (whole["status"], whole["incomplete_details"]) == (
        "incomplete",
        {"reason": "content_filter"},
    )
    assert whole["output"][0]["status"] == "incomplete"
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "You are a "


async def test_completions_ends_with_content_filter(filtered: Filtered) -> None:
    async with filtered(SAID) as bed:
        whole = (await posted(bed, COMPLETIONS, **asked(COMPLETIONS, max_tokens=40))).json()
    (choice,) = whole["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("You are a ", "content_filter")


async def test_sdks_read_what_was_blocked(filtered: Filtered) -> None:
    async with filtered(SAID) as bed:
        chat: Any = bed.openai.chat.completions
        made = await chat.create(model=MODEL, messages=asked(CHAT)["messages"])
        message = await bed.anthropic.messages.create(
            model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "hi"}]
        )
    assert made.choices[0].finish_reason == "content_filter"
    assert message.stop_reason == "refusal"


async def test_choices_are_blocked_each_for_itself(beds: BedMaker, rules: Path) -> None:
    texts = ["all is well.", "call 555-1234 now", "you damned fool. You"]

    def script(generation: Generation) -> Sequence[Step]:
        at = int(generation.request_id.rpartition("-")[2])
        return [[token] for token in beds.encoder.encode_text(texts[at])]

    async with beds.bed(beds.engine(script), by("patterns", rules)) as bed:
        whole = (await posted(bed, CHAT, **asked(CHAT, n=3))).json()
    shown = [(c["message"]["content"], c["finish_reason"]) for c in whole["choices"]]
    assert shown == [
        ("all is well.", "stop"),
        ("call ", "content_filter"),
        ("you ", "content_filter"),
    ]


async def test_a_stop_string_before_the_word_ends_the_answer_as_ever(filtered: Filtered) -> None:
    async with filtered(SAID) as bed:
        before = (await posted(bed, CHAT, **asked(CHAT, stop=["are"]))).json()
        after = (await posted(bed, CHAT, **asked(CHAT, stop=["call"]))).json()
        # Of the same words the stop string is the first to know, and hides the rest.
        within = (await posted(bed, CHAT, **asked(CHAT, stop=["Fool"]))).json()
    assert [answer["choices"][0]["finish_reason"] for answer in (before, after, within)] == [
        "stop",
        "content_filter",
        "stop",
    ]
    assert within["choices"][0]["message"]["content"] == "You are a Damned\n"


async def test_arguments_of_calls_are_looked_at(beds: BedMaker, rules: Path) -> None:
    calls = [
        {"name": "note", "arguments": {"text": "fine"}},
        {"name": "note", "arguments": {"text": "so damned\nfool"}},
    ]
    said = f"<tool_call>{json.dumps(calls)}</tool_call>"
    async with beds.bed(beds.engine(beds.says(said)), by("patterns", rules)) as bed:
        whole = (await posted(bed, CHAT, **asked(CHAT, tools=TOOLS))).json()
        chunks = events_of(await posted(bed, CHAT, **asked(CHAT, tools=TOOLS, stream=True)))
    (choice,) = whole["choices"]
    told = [call["function"]["arguments"] for call in choice["message"]["tool_calls"]]
    assert told == ['{"text": "fine"}', '{"text": "so ']
    assert choice["finish_reason"] == "content_filter"
    streamed = ["", ""]
    for chunk in chunks:
        for call in chunk["choices"][0]["delta"].get("tool_calls", ()):
            streamed[call["index"]] += call["function"]["arguments"]
    assert streamed == told
    assert chunks[-1]["choices"][0]["finish_reason"] == "content_filter"


async def test_escapes_hide_nothing_in_structured_output(beds: BedMaker, rules: Path) -> None:
    said = '{"text": "d\\u0061mned\\nfool"}'
    form = {"type": "json_object"}
    async with beds.bed(beds.engine(beds.says(said)), by("patterns", rules)) as bed:
        whole = (await posted(bed, CHAT, **asked(CHAT, response_format=form))).json()
    (choice,) = whole["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (
        '{"text": "',
        "content_filter",
    )


async def test_what_the_model_thinks_is_looked_at(thinkers: BedMaker, rules: Path) -> None:
    said = "<think>a damned fool he is</think>yes"
    async with thinkers.bed(thinkers.engine(thinkers.says(said)), by("patterns", rules)) as bed:
        whole = (await posted(bed, CHAT, **asked(CHAT))).json()
    (choice,) = whole["choices"]
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("a ", "")
    assert choice["finish_reason"] == "content_filter"


PROMPTS: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, asked(CHAT, "you DAMNED  fool"), "messages[0]"),
    (CHAT, {"messages": [{"role": "system", "content": "555-1234"}]}, "messages[0]"),
    (
        CHAT,
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "1",
                            "type": "function",
                            "function": {"name": "note", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": "damned fool"},
            ]
        },
        "messages[2]",
    ),
    (
        CHAT,
        asked(CHAT)
        | {
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "note",
                        "parameters": {"properties": {"x": {"description": "damned fool"}}},
                    },
                }
            ]
        },
        "tools[0]",
    ),
    (MESSAGES, asked(MESSAGES, "damned fool"), "messages[0]"),
    (RESPONSES, asked(RESPONSES, "damned fool"), "messages[0]"),
    (COMPLETIONS, asked(COMPLETIONS, "damned fool"), "prompt"),
]


@pytest.mark.parametrize(("path", "body", "place"), PROMPTS)
@pytest.mark.parametrize("stream", [False, True])
async def test_prompts_are_refused_before_anything_is_made_of_them(
    filtered: Filtered,
    caplog: pytest.LogCaptureFixture,
    path: str,
    body: dict[str, Any],
    place: str,
    *,
    stream: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with filtered(SAID) as bed:
        records: list[RequestRecord] = []
        bed.service.listeners.append(records.append)
        refused = await posted(bed, path, **body, stream=stream)
        assert not bed.engine.submissions
        await until(lambda: records)
    error = refused.json()["error"]
    assert refused.status_code == 400
    assert error["type"] == "invalid_request_error"
    assert error["message"] == f"{place} was refused by the content filter"
    if path != MESSAGES:
        assert (error["code"], error["param"]) == ("content_filter", place)
    (record,) = records
    assert (record.outcome, record.error) == (Outcome.REFUSED, "ContentRefused")
    assert record.account.filter_rules in (["curse"], ["numbers"])
    assert (record.account.prompt_tokens, record.account.completion_tokens) == (0, 0)
    lines = [vars(line).get("fields", {}) for line in caplog.records if line.message == "request"]
    assert [line["filter_rule"] for line in lines] == record.account.filter_rules
    assert "fool" not in (refused.text + caplog.text).lower()


async def test_a_prompt_of_token_ids_is_read_too(filtered: Filtered, beds: BedMaker) -> None:
    async with filtered(SAID) as bed:
        ids = beds.encoder.encode_text("a damned fool")
        refused = await posted(bed, COMPLETIONS, prompt=[ids])
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "prompt"


async def test_rules_are_followed_and_broken_ones_change_nothing(
    beds: BedMaker, rules: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(followed_file, "INTERVAL_S", 0.01)

    def replaced(text: str) -> None:
        fresh = rules.with_name("fresh")
        fresh.write_text(text)
        fresh.replace(rules)

    async def status(text: str) -> int:
        return (await posted(bed, CHAT, **asked(CHAT, text))).status_code

    async with beds.bed(beds.engine(beds.says("fine")), by("patterns", rules)) as bed:
        assert await status("tulips") == 200
        replaced("rules: [{name: flowers, words: [tulips]}]")
        async with asyncio.timeout(PATIENCE_S):
            while await status("tulips") == 200:
                pass
        assert await status("damned fool") == 200
        replaced("rules: [{name: flowers, words: [roses], patterns: ['a*']}]")
        await until(lambda: "which has no bound" in caplog.text)
        assert (await status("tulips"), await status("roses")) == (400, 200)


async def test_a_filter_that_cannot_be_made_stops_the_start(beds: BedMaker, rules: Path) -> None:
    async def started(change: Change) -> None:
        async with beds.bed(beds.engine(beds.says("fine")), change):
            pass

    with pytest.raises(BadConfig, match=r"content_filter\.name must be one of .*patterns.*'no'"):
        await started(by("no"))
    with pytest.raises(BadConfig, match=r"needs service\.content_filter\.file"):
        await started(by("patterns"))
    await asyncio.to_thread(rules.write_text, "rules: [{name: a, patterns: ['a+']}]")
    with pytest.raises(BadConfig, match=r"rules\.yaml: a, patterns\[0\] must not have \+"):
        await started(by("patterns", rules))
    with pytest.raises(ValueError, match="name must be set where file is"):
        ContentFilterSettings(file=rules)


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = plugins.__name__
    names = ("raising", "raising_on_outputs", "hanging", "untrue", "missing")
    targets = {name: f"{module}:{name}" for name in names}
    monkeypatch.syspath_prepend(plugins.installed(tmp_path, **targets))


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("name", ["raising", "raising_on_outputs", "untrue"])
async def test_a_filter_that_fails_lets_nothing_through(
    beds: BedMaker, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async with beds.bed(beds.engine(beds.says("fine day")), by(name)) as bed:
        refused = await posted(bed, CHAT, **asked(CHAT))
        streamed = await posted(bed, CHAT, **asked(CHAT, stream=True))
    assert refused.status_code == 503
    assert "the content filter cannot be asked now" in refused.json()["error"]["message"]
    assert "fine" not in streamed.text
    assert "the content filter cannot be asked now" in streamed.text
    assert "secret" not in refused.text + streamed.text + caplog.text


@pytest.mark.usefixtures("foreign")
async def test_a_filter_that_hangs_harms_nobody_else(beds: BedMaker) -> None:
    plugins.Hanging.let_go.clear()
    engine: ScriptedEngine = beds.engine(beds.says("fine"))
    try:
        async with beds.bed(engine, by("hanging", timeout_s=0.05)) as bed:
            refused = await asyncio.gather(
                *(posted(bed, CHAT, **asked(CHAT)) for _ in range(8)),
                posted(bed, "/tokenize", prompt="hi"),
            )
            assert [answer.status_code for answer in refused] == [503] * 8 + [200]
            assert not engine.submissions
    finally:
        plugins.Hanging.let_go.set()


@pytest.mark.usefixtures("foreign")
async def test_a_filter_that_cannot_be_loaded_stops_the_start(beds: BedMaker) -> None:
    with pytest.raises(BadConfig, match="missing cannot be loaded"):
        async with beds.bed(beds.engine(beds.says("fine")), by("missing")):
            pass
