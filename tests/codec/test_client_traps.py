"""What the requests of agents and chat clients hold that broke other servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import Any

import httpx
import pytest

from tests.codec_bed import CONTEXT_LENGTH, MODEL, Bed, BedMaker
from tests.scripted_engine import ScriptedEngine

TEXT = "Hello there"
HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": HI},
    MESSAGES: {"messages": HI, "max_tokens": 32_000},
    RESPONSES: {"input": "hi"},
}
LIMITS = {CHAT: "max_tokens", MESSAGES: "max_tokens", RESPONSES: "max_output_tokens"}
HINTS = ("x-session-affinity", "x-session-id", "x-claude-code-session-id", "session-id")


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed:
        yield bed


async def post(bed: Bed, path: str, headers: Any = None, **body: Any) -> httpx.Response:
    whole = {"model": MODEL, **BODIES[path.partition("?")[0]], **body}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        return await client.post(path, json=whole, headers=headers)


def session_keys(engine: ScriptedEngine) -> list[str | None]:
    return [generation.routing.session_key for generation in engine.generations]


def digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()


@pytest.mark.parametrize("wished", [32_000, 65_535, 128_000])
@pytest.mark.parametrize("path", BODIES)
async def test_more_tokens_than_there_is_room_for_are_a_cap(
    bed: Bed, path: str, wished: int
) -> None:
    answer = await post(bed, path, **{LIMITS[path]: wished})
    assert answer.status_code == 200
    (generation,) = bed.engine.generations
    room = CONTEXT_LENGTH - len(generation.prompt_ids)
    assert generation.stopping.max_tokens == room


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_fills_the_room_ends_as_one_at_its_limit(
    beds: BedMaker, stream: bool
) -> None:
    engine = beds.engine(beds.says(" word" * 2 * CONTEXT_LENGTH, group=64))
    async with beds.bed(engine) as bed:
        chat = await post(bed, CHAT, max_tokens=32_000, stream=stream)
        message = await post(bed, MESSAGES, stream=stream)
        response = await post(bed, RESPONSES, stream=stream)
    assert '"finish_reason":"length"' in chat.text
    assert '"stop_reason":"model_context_window_exceeded"' in message.text
    assert '"reason":"max_output_tokens"' in response.text


@pytest.mark.parametrize("stream", [True, False])
async def test_a_prompt_that_does_not_fit_is_refused_in_the_words_that_clients_look_for(
    bed: Bed, stream: bool
) -> None:
    long = [{"role": "user", "content": "word " * 2 * CONTEXT_LENGTH}]
    message = await post(bed, MESSAGES, messages=long, stream=stream)
    counted = await bed.anthropic.messages.count_tokens(model=MODEL, messages=long)  # type: ignore[arg-type]  # they are
    error = message.json()["error"]
    assert message.status_code == 400
    assert error["type"] == "invalid_request_error"
    words = f"prompt is too long: {counted.input_tokens} tokens > {CONTEXT_LENGTH} maximum"
    assert error["message"] == words
    for path, field in ((CHAT, "messages"), (RESPONSES, "input")):
        refused = await post(bed, path, **{field: long}, stream=stream)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert not bed.engine.generations


async def test_betas_fields_and_kinds_of_tools_that_nobody_knows_are_no_error(bed: Bed) -> None:
    """As Claude Code sends them, a system turn amid the conversation with them."""
    answer = await post(
        bed,
        f"{MESSAGES}?beta=true",
        headers={"anthropic-beta": "never-heard-of-2031-01-01,other", "anthropic-version": "x"},
        tools=[
            {"name": "Read", "input_schema": {"type": "object"}, "eager_input_streaming": True},
            {"name": "web_search", "type": "web_search_20310101", "max_uses": 3},
        ],
        messages=[*HI, {"role": "system", "content": "be brief"}],
        system=[{"type": "text", "text": "help", "cache_control": {"type": "ephemeral"}}],
        thinking={"type": "adaptive"},
        output_config={"effort": "high"},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        tomorrow={"is": ["another", "day"]},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["content"][0]["text"] == TEXT


async def test_a_request_of_codex_is_answered(bed: Bed) -> None:
    developer = {"type": "input_text", "text": "be brief"}
    answer = await post(
        bed,
        RESPONSES,
        input=[
            {"type": "message", "role": "developer", "content": [developer]},
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        ],
        tools=[
            {"type": "function", "name": "shell", "parameters": {"type": "object"}},
            {"type": "namespace", "name": "mcp", "description": "others", "tools": []},
            {"type": "web_search", "external_web_access": False},
            {"type": "odd"},
        ],
        store=False,
        include=["reasoning.encrypted_content"],
        client_metadata={"x": "y"},
        prompt_cache_key="thread",
        parallel_tool_calls=False,
    )
    assert answer.status_code == 200, answer.text
    assert session_keys(bed.engine) == [digest("thread")]


@pytest.mark.parametrize("header", HINTS)
@pytest.mark.parametrize("path", BODIES)
async def test_a_session_that_headers_name_is_the_affinity_key_as_a_digest(
    bed: Bed, path: str, header: str
) -> None:
    for session in ("s1", "s2", "s1"):
        await post(bed, path, headers={header: session})
    await post(bed, path)
    assert session_keys(bed.engine) == [digest("s1"), digest("s2"), digest("s1"), None]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"prompt_cache_key": "u"}),
        (CHAT, {"user": "u"}),
        (MESSAGES, {"metadata": {"user_id": "u"}}),
        (RESPONSES, {"prompt_cache_key": "u"}),
    ],
)
async def test_what_a_body_names_is_the_affinity_key_unless_a_header_names_a_session(
    bed: Bed, path: str, body: dict[str, Any]
) -> None:
    await post(bed, path, **body)
    await post(bed, path, headers={"x-session-id": "s"}, **body)
    assert session_keys(bed.engine) == [digest("u"), digest("s")]


async def test_a_session_is_no_part_of_the_prompt_or_of_the_cache(bed: Bed) -> None:
    await post(bed, CHAT, headers={"x-session-id": "s"})
    await post(bed, CHAT)
    one, other = [replace(generation, request_id="") for generation in bed.engine.generations]
    assert one.prompt_ids == other.prompt_ids
    assert one.cache == other.cache


async def test_usage_is_at_both_ends_of_a_streamed_message(bed: Bed) -> None:
    """Clients read the input's count from the one or the other."""
    whole = (await post(bed, MESSAGES)).json()["usage"]
    streamed = await post(bed, MESSAGES, stream=True)
    lines = [line for line in streamed.text.splitlines() if line.startswith("data: ")]
    events = {event["type"]: event for event in map(json.loads, (line[6:] for line in lines))}
    first, last = events["message_start"]["message"]["usage"], events["message_delta"]["usage"]
    counted = await bed.anthropic.messages.count_tokens(model=MODEL, messages=HI)  # type: ignore[arg-type]  # they are
    assert first["input_tokens"] == last["input_tokens"] == whole["input_tokens"]
    assert first["input_tokens"] == counted.input_tokens
    assert last["output_tokens"] == whole["output_tokens"] > 0


async def test_head_of_the_root_and_a_query_are_answered(bed: Bed) -> None:
    async with httpx.AsyncClient(base_url=bed.url) as client:
        head = await client.head("/")
        assert (head.status_code, head.content) == (200, b"")
        count = {"model": MODEL, "messages": HI}
        answer = await client.post("/v1/messages/count_tokens?beta=true", json=count)
    assert answer.json()["input_tokens"] > 0


async def test_two_calls_at_once_come_out_apart_however_they_are_streamed(beds: BedMaker) -> None:
    calls = [{"name": "read", "arguments": {"path": path}} for path in ("a", "b")]
    tool = {"name": "read", "parameters": {"type": "object"}}
    engine = beds.engine(beds.says(f"<tool_call>{json.dumps(calls)}</tool_call>"))
    async with beds.bed(engine) as bed:
        create: Any = bed.openai.chat.completions.create
        stream = await create(
            model=MODEL,
            messages=HI,
            tools=[{"type": "function", "function": tool}],
            max_tokens=32_000,
            stream=True,
        )
        chunks = [chunk async for chunk in stream]
    choices = chain.from_iterable(chunk.choices for chunk in chunks)
    parts = list(chain.from_iterable(choice.delta.tool_calls or () for choice in choices))
    for at, path in enumerate(("a", "b")):
        own = [part for part in parts if part.index == at]
        assert [part.function.name for part in own if part.function and part.function.name] == [
            "read"
        ]
        arguments = "".join(part.function.arguments or "" for part in own if part.function)
        assert json.loads(arguments) == {"path": path}
    assert len({part.id for part in parts if part.id}) == 2


async def test_two_requests_of_one_session_at_once_do_not_mix(beds: BedMaker) -> None:
    """Clients ask for a title while they ask for the answer."""
    engine = beds.engine(lambda generation: [list(generation.prompt_ids[-12:])])
    session = {"x-session-id": "one"}
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url) as client:

        async def ask(word: str) -> str:
            body = {"model": MODEL, "messages": [{"role": "user", "content": word}]}
            answer = await client.post(CHAT, json=body, headers=session)
            return str(answer.json()["choices"][0]["message"]["content"])

        said = await asyncio.gather(ask("zebra"), ask("ocean"))
    assert "zebra" in said[0]
    assert "ocean" in said[1]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_text_block_has_no_citations_where_there_are_none(bed: Bed, stream: bool) -> None:
    """The Vercel AI SDK takes a list or nothing, no null."""
    answer = await post(bed, MESSAGES, stream=stream)
    assert answer.status_code == 200
    assert "citations" not in answer.text
