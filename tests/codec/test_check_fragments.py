"""Arguments of calls in streamed Messages are JSON, whatever the model writes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.codec_bed import MODEL, Bed, BedMaker

HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
TOOLS: list[dict[str, Any]] = [
    {"name": "weather", "input_schema": {"type": "object"}},
    {"name": "time", "input_schema": {"type": "object"}},
]
CALLS = (
    '<tool_call>[{"name": "weather", "arguments": {"city": "Bonn"}}, {"name": "time"}]</tool_call>'
)


async def ask(bed: Bed) -> Any:
    create: Any = bed.anthropic.messages.create
    return await create(model=MODEL, messages=HI, max_tokens=2000, tools=TOOLS)


async def final(bed: Bed) -> Any:
    helper: Any = bed.anthropic.messages.stream
    async with helper(model=MODEL, messages=HI, max_tokens=2000, tools=TOOLS) as stream:
        return await stream.get_final_message()


MALFORMED = [
    '{"city": "Bo',
    '{"city": "Bonn", ',
    '{"city": "a\\',
    '{"city": "\\u12',
    '{"city": tru',
    '{"city": [1, {"x": -',
    '{"city": nonsense}',
    '{"city": "a" "b"}',
    '{"city"',
    "[1, 2]",
    '"text"',
    "}{",
    '{"city": "\\ud83d"}',
]


@pytest.mark.parametrize("arguments", MALFORMED)
@pytest.mark.parametrize("closes", ["}]</tool_call>", ""])
async def test_fragments_are_json_whatever_the_model_writes(
    beds: BedMaker, arguments: str, closes: str
) -> None:
    """Check 88: the SDK parses them strictly and would raise."""
    said = f'<tool_call>[{{"name": "weather", "arguments": {arguments}{closes}'
    async with beds.bed(beds.engine(beds.says(said))) as bed:
        streamed, whole = await final(bed), await ask(bed)
    shown = [
        [(block.type, getattr(block, "input", None), getattr(block, "text", None)) for block in of]
        for of in (streamed.content, whole.content)
    ]
    assert shown[0] == shown[1]
    assert all(isinstance(value, dict) for kind, value, _ in shown[0] if kind == "tool_use")


async def test_raw_fragments_concatenate_to_json(beds: BedMaker) -> None:
    """Check 88."""
    body = {"model": MODEL, "max_tokens": 99, "messages": HI, "tools": TOOLS, "stream": True}
    async with (
        beds.bed(beds.engine(beds.says(CALLS))) as bed,
        httpx.AsyncClient(base_url=bed.url) as client,
    ):
        answer = await client.post("/v1/messages?beta=true", json=body)
    told = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
    pieces: dict[int, str] = {}
    for event in told:
        if event["type"] == "content_block_delta":
            pieces[event["index"]] = pieces.get(event["index"], "") + event["delta"]["partial_json"]
    assert [json.loads(pieces[at]) for at in (0, 1)] == [{"city": "Bonn"}, {}]
    order = [event["type"] for event in told]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert [kind for at, kind in enumerate(order) if kind != order[at - 1]] == [
        "message_start",
        *block,
        *block,
        "message_delta",
        "message_stop",
    ]
