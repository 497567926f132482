"""Bad requests over HTTP to the whole stack: each refused by name, the next one served."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.integration.stack import Stack
from tests.security.http_exchange import (
    CHAT,
    COUNT,
    MESSAGES,
    OTHER_PATHS,
    PATHS,
    connected,
    refused,
    serves,
)

DEEP = b'{"model":"m","messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
TURN = {"role": "user", "content": "hi"}
RAW: list[tuple[bytes, tuple[str, ...]]] = [
    (b"", ("body must be JSON",)),
    (b"{]", ("body must be JSON",)),
    (b'"text"', ("body must be a JSON object",)),
    (b"\x80\x04\x95pickle.", ("body must be UTF-8", "byte 0")),
    (DEEP, ("nested", "64")),
    (b'{"model":"m\xc3\x28"}', ("body must be UTF-8",)),
]


@pytest.mark.parametrize("path", [*PATHS, *OTHER_PATHS])
@pytest.mark.parametrize(("raw", "said"), RAW)
def test_bytes_that_are_no_request(
    simulated_stack: Stack, path: str, raw: bytes, said: tuple[str, ...]
) -> None:
    with connected(simulated_stack) as client:
        error = refused(path, client.post(path, content=raw), 400)
    assert all(words in error["message"] for words in said)
    assert serves(simulated_stack)


VALUES: list[tuple[dict[str, Any], int, tuple[str, ...]]] = [
    ({"model": "no-such"}, 404, ("model", "no-such")),
    ({"model": ["x"]}, 400, ("model", "a string", "an array")),
    ({"messages": []}, 400, ("messages", "1 to 100000 items", "got 0")),
    ({"messages": "hi"}, 400, ("messages", "an array", "a string")),
    ({"messages": [{"content": "hi"}]}, 400, ("messages[0].role",)),
    ({"messages": [TURN, {**TURN, "role": "ghost"}]}, 400, ("messages[1].role", "ghost", "user")),
    ({"messages": [{**TURN, "content": 7}]}, 400, ("messages[0].content", "a number")),
    ({"messages": [{**TURN, "content": "a\ud800"}]}, 400, ("messages[0].content", "surrogate")),
    ({"messages": [{**TURN, "content": "a\0"}]}, 400, ("messages[0].content", "U+0000")),
    ({"max_tokens": -1}, 400, ("max_tokens", "-1")),
    ({"max_tokens": 2**63}, 400, ("max_tokens", str(2**31 - 1), str(2**63))),
    ({"max_tokens": "many"}, 400, ("max_tokens", "a string")),
    ({"temperature": 9}, 400, ("temperature", "2", "9")),
    ({"top_p": 0}, 400, ("top_p", "0")),
    ({"top_k": -7}, 400, ("top_k", "-7")),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("changes", "status", "said"), VALUES)
def test_values_out_of_bounds(
    simulated_stack: Stack, path: str, changes: dict[str, Any], status: int, said: tuple[str, ...]
) -> None:
    body = json.dumps(simulated_stack.chat(max_tokens=5) | changes).encode()
    with connected(simulated_stack) as client:
        error = refused(path, client.post(path, content=body), status)
    assert all(words in error["message"] for words in said), error["message"]
    assert serves(simulated_stack)


def test_no_tokens_are_refused_where_the_protocol_forbids_it(simulated_stack: Stack) -> None:
    body = simulated_stack.chat(max_tokens=0)
    with connected(simulated_stack) as client:
        error = refused(CHAT, client.post(CHAT, json=body), 400)
        counted = client.post(MESSAGES, json=body).json()["usage"]["output_tokens"]
    assert error["param"] == "max_tokens"
    assert "got 0" in error["message"]
    assert counted == 0


def test_a_million_answers_are_refused_at_once(simulated_stack: Stack) -> None:
    with connected(simulated_stack) as client:
        error = refused(CHAT, client.post(CHAT, json=simulated_stack.chat(n=10**6)), 400)
    assert error["param"] == "n"


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_prompt_of_the_real_model_beyond_its_context(stack: Stack, path: str) -> None:
    with connected(stack) as client:
        body = stack.chat("a longer story, " * 100, max_tokens=5)
        error = refused(path, client.post(path, json=body), 400)
    assert "192" in error["message"]
    assert ("maximum context length" in error["message"]) == (path == CHAT)
    assert error.get("code", "") == ("context_length_exceeded" if path == CHAT else "")
    assert serves(stack)


@pytest.mark.parametrize("path", PATHS)
def test_ten_thousand_messages(stack: Stack, path: str) -> None:
    roles = ("user", "assistant") * 5000
    messages = [{"role": role, "content": "x"} for role in roles]
    with connected(stack) as client:
        answer = client.post(path, json=stack.chat(max_tokens=5) | {"messages": messages})
        if path == COUNT:
            assert answer.json()["input_tokens"] > 10_000
        else:
            refused(path, answer, 400)
    assert serves(stack)


@pytest.mark.parametrize("path", PATHS)
def test_a_body_of_50_megabytes_is_refused_by_its_limit(simulated_stack: Stack, path: str) -> None:
    with connected(simulated_stack) as client:
        error = refused(path, client.post(path, content=b" " * 50_000_000), 413)
    assert "32000000" in error["message"]
    assert serves(simulated_stack)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", CHAT),
        ("PUT", MESSAGES),
        ("POST", "/v1/models"),
        ("GET", "/v1/models/..%2f..%2fno%2fsuch"),
        ("GET", "/metrics"),
        ("POST", "/v1/messages/batches"),
        ("POST", "/update_weights"),
        ("GET", "/docs"),
    ],
)
def test_what_is_not_served(simulated_stack: Stack, method: str, path: str) -> None:
    with connected(simulated_stack) as client:
        answer = client.request(method, httpx.URL(simulated_stack.url, raw_path=path.encode()))
    status = 405 if path in {CHAT, MESSAGES, "/v1/models"} else 404
    refused(MESSAGES if path.startswith(MESSAGES) else CHAT, answer, status)
