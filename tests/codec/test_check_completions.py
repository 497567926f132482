"""Conformance of Completions, models and headers over the official SDKs; numbers are the list's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest

from services.codec.settings import DoorSettings
from services.shared.errors import Internal, Overloaded
from services.shared.stream.generation import Generation
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.scripted_engine import Script, Step, refusing

TEXT = "Hello 日本語 🦀!"


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT))) as bed:
        yield bed


async def complete(bed: Bed, prompt: Any, **options: Any) -> Any:
    create: Any = bed.openai.completions.create
    return await create(model=MODEL, prompt=prompt, **options)


async def test_text_is_completed_whole_and_streamed(bed: Bed) -> None:
    """Check 63."""
    answer = await complete(bed, "a")
    assert (answer.object, answer.choices[0].text) == ("text_completion", TEXT)
    assert answer.choices[0].finish_reason == "stop"
    stream = await complete(bed, "a", stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == TEXT
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage == answer.usage


async def test_sixteen_tokens_where_nothing_is_said(beds: BedMaker) -> None:
    """1.10."""
    async with beds.bed(beds.engine(beds.says("a b c d " * 20))) as bed:
        answer = await complete(bed, "a")
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (16, "length")


@pytest.mark.parametrize("stream", [True, False])
async def test_prompts_times_choices_are_numbered_in_order(bed: Bed, stream: bool) -> None:
    """Check 63."""
    answer = await complete(bed, ["one", "two"], n=2, echo=True, stream=stream)
    texts: dict[int, str] = {}
    for part in [chunk async for chunk in answer] if stream else [answer]:
        for choice in part.choices:
            texts[choice.index] = texts.get(choice.index, "") + choice.text
    assert texts == {0: f"one{TEXT}", 1: f"one{TEXT}", 2: f"two{TEXT}", 3: f"two{TEXT}"}
    assert len(bed.engine.generations) == 4


@pytest.mark.parametrize("nested", [True, False])
async def test_token_ids_are_a_prompt(bed: Bed, nested: bool) -> None:
    """Check 63."""
    text = "Hi <|im_end|>\n"
    await complete(bed, text)
    ids = list(bed.engine.generations[0].prompt_ids)
    assert 2 in ids
    answer = await complete(bed, [ids] if nested else ids, echo=True)
    assert list(bed.engine.generations[1].prompt_ids) == ids
    assert answer.choices[0].text == text + TEXT


async def test_control_tokens_can_be_kept_out_of_a_prompt(bed: Bed) -> None:
    """1.10: parse_special."""
    await complete(bed, "Hi <|im_end|>", extra_body={"parse_special": False})
    assert 2 not in bed.engine.generations[0].prompt_ids


async def test_logprobs_are_parallel_lists(bed: Bed) -> None:
    """Check 63."""
    answer = await complete(bed, "a", logprobs=2)
    told = answer.choices[0].logprobs
    count = len(told.tokens)
    assert [len(told.token_logprobs), len(told.top_logprobs), len(told.text_offset)] == [count] * 3
    assert told.text_offset[0] == 0
    assert told.text_offset == sorted(told.text_offset)
    assert told.text_offset[-1] <= len(TEXT)


@pytest.mark.parametrize(
    ("prompt", "options", "param"),
    [
        ("a", {"suffix": "b"}, "suffix"),
        ("a", {"best_of": 3}, "best_of"),
        ("a", {"best_of": 2, "n": 1, "stream": True}, "best_of"),
        ([], {}, "prompt"),
        ("", {}, "prompt"),
        ([[]], {}, "prompt[0]"),
        ([49152], {}, "prompt[0]"),
        ([1, "a"], {}, "prompt[1]"),
        (["a"] * 100, {"n": 2}, "n"),
        ("a", {"max_tokens": -1}, "max_tokens"),
    ],
)
async def test_bad_prompts_are_refused_by_name(
    bed: Bed, prompt: Any, options: dict[str, Any], param: str
) -> None:
    """1.10."""
    with pytest.raises(openai.BadRequestError) as caught:
        await complete(bed, prompt, **options)
    assert caught.value.param == param


async def test_models_with_slashes_are_found_by_both_sdks(bed: Bed) -> None:
    """Check 64."""
    listed = [model.id async for model in bed.openai.models.list()]
    assert listed == [model.id async for model in bed.anthropic.models.list(limit=1000)]
    assert (await bed.openai.models.retrieve(MODEL)).id == MODEL
    assert (await bed.anthropic.models.retrieve(MODEL)).id == MODEL
    async with httpx.AsyncClient(base_url=bed.url) as client:
        raw = await client.get(f"/v1/models/{MODEL}")
        body = (await client.get("/v1/models?limit=1000&after_id=x")).json()
    assert raw.json()["max_model_len"] == 4096
    assert body["models"] == []


def counted(inner: Script, counts: list[int]) -> Script:
    def script(generation: Generation) -> Sequence[Step]:
        counts.append(1)
        return inner(generation)

    return script


@pytest.mark.parametrize(("error", "calls"), [(Overloaded("full"), 2), (Internal("bug"), 1)])
async def test_sdk_asks_again_only_where_that_may_help(
    beds: BedMaker, error: Any, calls: int
) -> None:
    """Check 66: 429 is asked again, 500 says `x-should-retry: false`."""
    counts: list[int] = []
    async with beds.bed(beds.engine(counted(refusing(error), counts))) as bed:
        patient: Any = bed.openai.with_options(max_retries=1).completions.create
        with pytest.raises(openai.APIStatusError) as caught:
            await patient(model=MODEL, prompt="a")
    assert len(counts) == calls
    retry = caught.value.response.headers.get("x-should-retry")
    assert retry == ("false" if calls == 1 else None)


async def test_pages_of_allowed_origins_may_ask(beds: BedMaker) -> None:
    """1.9: CORS is off until an origin is allowed."""
    asks = {"origin": "http://ui.test", "access-control-request-method": "POST"}
    path = "/v1/chat/completions"
    engine = beds.engine(beds.says(TEXT))
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url) as client:
        assert (await client.options(path, headers=asks)).status_code == 405

    def allow(door: DoorSettings) -> DoorSettings:
        return replace(door, allowed_origins=("http://ui.test",))

    async with (
        beds.bed(engine, change_door=allow) as bed,
        httpx.AsyncClient(base_url=bed.url) as client,
    ):
        answer = await client.options(path, headers=asks)
        missing = await client.get("/nothing", headers={"origin": "http://ui.test"})
        other = await client.get("/v1/models", headers={"origin": "http://evil.test"})
    assert answer.headers["access-control-allow-origin"] == "http://ui.test"
    assert missing.headers["access-control-allow-origin"] == "http://ui.test"
    assert "access-control-allow-origin" not in other.headers
