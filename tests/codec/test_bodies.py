"""Hostile and broken bodies at the HTTP door: an error in the envelope, and the server lives on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.messages.request import parse_count
from services.codec.protocols.reading import Reading
from services.codec.request import Request
from services.shared.byte_size import ByteSize
from services.shared.errors import InvalidRequest
from services.shared.stream.generation import Generation
from services.shared.stream.generation_wire import generation_from, request_of
from tests.codec_bed import MODEL, Bed, BedMaker

CHAT = "/v1/chat/completions"
LIMIT = 100_000
READING = Reading(vocabulary_size=49152)


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    def change(service: Any) -> Any:
        limits = replace(service.limits, max_body_bytes=ByteSize(LIMIT))
        return replace(service, limits=limits)

    async with beds.bed(beds.engine(beds.says("fine")), change) as bed:
        yield bed


def body(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], **changes}


def said(content: str) -> bytes:
    return b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % content.encode()


NESTED = b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}"

BROKEN = [
    (b"", "body must be JSON"),
    (b"{", "body must be JSON"),
    (b"[]", "body must be a JSON object"),
    (b"null", "body must be a JSON object"),
    (b'{"model": NaN}', "NaN"),
    (b'{"model": -Infinity}', "-Infinity"),
    (NESTED, "nested at most 64"),
    (b'{"a":' * 70 + b"1" + b"}" * 70, "nested at most 64"),
    (b'{"seed": ' + b"9" * 5000 + b"}", "at most 100 digits"),
    (b'{"model":"m\xff"}', "UTF-8"),
    (said("a\\ud800b"), "messages[0].content must not contain lone surrogates"),
    (said("a\\u0000b"), "messages[0].content must not contain the character U+0000"),
    (b"{}", "model must be set"),
    (b'{"model": 7}', "model must be a string, got a number"),
    (b'{"model":"m","messages":{}}', "messages must be an array, got an object"),
    (b'{"model":"m","messages":[7]}', "messages[0] must be an object, got a number"),
    (b'{"model":"m","messages":[{}]}', "messages[0].role must be set"),
    (
        b'{"model":"m","messages":[{"role":"user","content":[{"type":7}]}]}',
        "messages[0].content[0].type must be a string, got a number",
    ),
]


@pytest.mark.parametrize(("raw", "text"), BROKEN)
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/v1/messages/count_tokens"])
async def test_broken_bodies_are_explained(bed: Bed, path: str, raw: bytes, text: str) -> None:
    """Check 110."""
    if path == "/v1/messages":
        raw = raw.replace(b'{"model":"m"', b'{"max_tokens":9,"model":"m"')
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post(path, content=raw)
    assert answer.status_code == 400
    assert text in answer.json()["error"]["message"]


NUMBERS = ["true", "1e400", "-1e400", '"1"', "[]", "{}", "9" * 50, "0.5e-400", "null", "2", "-2"]
FIELDS = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "n",
    "top_logprobs",
]


def outcome(
    parse: Callable[[Reading, bytes], Request], raw: bytes
) -> tuple[Request | None, InvalidRequest | None]:
    """What a body becomes; any other error is the test's."""
    try:
        return parse(READING, raw), None
    except InvalidRequest as error:
        return None, error


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("protocol", [CHAT_COMPLETIONS, MESSAGES])
def test_numbers_are_bounded_or_refused_by_name(protocol: Any, field: str, number: str) -> None:
    head = json.dumps(body(max_tokens=5) if field != "max_tokens" else body())
    raw = f'{head[:-1]}, "{field}": {number}}}'.encode()
    request, error = outcome(protocol.parse, raw)
    if request is None:
        assert error is not None
        assert error.field == field
        assert field in error.message
        return
    sampling, ending = request.sampling, request.ending
    assert 0 <= sampling.temperature <= 2
    assert sampling.seed is None or 0 <= sampling.seed < 2**64
    assert ending.max_tokens is None or 0 <= ending.max_tokens < 2**31


@pytest.mark.parametrize("field", ["top_p", "repetition_penalty"])
@pytest.mark.parametrize("protocol", [CHAT_COMPLETIONS, MESSAGES])
def test_numbers_too_small_for_the_wire_stay_above_zero_there(protocol: Any, field: str) -> None:
    request = protocol.parse(READING, json.dumps(body(max_tokens=5, **{field: 1e-300})).encode())
    sent = request_of(Generation(request_id="r", prompt_ids=[1], sampling=request.sampling))
    assert 0 < getattr(generation_from(sent).sampling, field) < 1e-37


@pytest.mark.parametrize("how", ["announced", "chunked"])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
async def test_large_bodies_are_refused_in_the_envelope(bed: Bed, path: str, how: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(2 * LIMIT // 1000):
            yield b"x" * 1000

    content: Any = chunks() if how == "chunked" else b"x" * 50_000_000
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post(path, content=content)
        assert answer.status_code == 413
        assert "request_too_large" in answer.text
        assert (await client.post(CHAT, json=body())).status_code == 200


async def test_duplicate_keys_are_taken_and_the_last_counts(bed: Bed) -> None:
    raw = json.dumps(body())[:-1] + ', "model": "nope", "model": "claude-small"}'
    async with httpx.AsyncClient(base_url=bed.url) as client:
        assert (await client.post(CHAT, content=raw)).json()["model"] == "claude-small"


async def test_ten_thousand_messages_are_read(beds: BedMaker) -> None:
    engine = beds.engine(beds.says("fine"))
    engine.describes.context_length = 2_000_000
    messages = [{"role": role, "content": "x"} for role in ("user", "assistant") * 5000]
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url, timeout=60) as client:
        answer = await client.post(CHAT, json=body(messages=messages))
    assert answer.json()["choices"][0]["message"]["content"] == "fine"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405),
        ("GET", "/v1/messages", 405),
        ("POST", "/v1/nothing", 404),
        ("GET", f"{CHAT}/", 404),
        ("GET", "/v1/models/no/such", 404),
        ("GET", "/../../etc/passwd", 404),
    ],
)
async def test_wrong_paths_and_methods_are_told_in_the_envelope(
    bed: Bed, method: str, path: str, status: int
) -> None:
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert answer.headers["x-request-id"].startswith("req_")


async def test_a_bug_is_told_without_its_details(
    beds: BedMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> list[int]:
        raise KeyError("/secret/path")

    async with beds.bed(beds.engine(beds.says("fine"))) as bed:
        with monkeypatch.context() as patch:
            patch.setattr(beds.encoder, "encode_with_head", broken)
            async with httpx.AsyncClient(base_url=bed.url) as client:
                answer = await client.post(CHAT, json=body())
                assert answer.status_code == 500
                assert answer.json()["error"]["message"] == "internal error"
                assert "secret" not in answer.text
        async with httpx.AsyncClient(base_url=bed.url) as client:
            assert (await client.post(CHAT, json=body())).status_code == 200


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["user", "assistant", "text", "function", "tool_result", "enabled", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "name", "id", "input", "function"])
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
OTHER_NAMES = (
    "model messages system tools tool_choice stop stop_sequences logit_bias thinking output_config "
    "response_format stream metadata chat_template_kwargs documents stream_options stop_token_ids "
    "cache_salt"
)
NAMES = st.sampled_from([*FIELDS, *OTHER_NAMES.split()])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, JSON_VALUES, max_size=6), st.booleans())
def test_any_json_is_a_request_or_an_invalid_request(
    values: dict[str, Any], with_messages: bool
) -> None:
    if with_messages:
        values = body(max_tokens=5) | values
    raw = json.dumps(values).replace("NaN", "1e999").replace("Infinity", "1e999").encode()
    for parse in (CHAT_COMPLETIONS.parse, MESSAGES.parse, parse_count):
        request, error = outcome(parse, raw)
        assert request is not None or (error is not None and 0 < len(error.message) < 600)
