"""Requests to the HTTP door, and what every refusal must look like."""

from __future__ import annotations

import re
from typing import Any

import httpx

from tests.integration.stack import PATIENCE_S, Stack

CHAT, MESSAGES, COUNT = "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"
PATHS = (CHAT, MESSAGES, COUNT)
OTHER_PATHS = ("/v1/responses", "/v1/responses/input_tokens", "/v1/completions", "/tokenize")

LEAKS = re.compile(
    r"Traceback|File \"|\.py\b|site-packages|/(?:root|home|usr|tmp|work|proc|etc)/"
    r"|0x[0-9a-f]{6,}|\d+\.\d+\.\d+\.\d+|\blocalhost\b"
    r"|<class|object at|\b[A-Z][A-Za-z]+(?:Error|Exception|Warning)\b"
    r"|\bservices\.|grpc|torch|starlette"
)
"""Paths, addresses, class names and tracebacks."""


def connected(stack: Stack) -> httpx.Client:
    return httpx.Client(base_url=stack.url, timeout=PATIENCE_S)


def refused(path: str, answer: httpx.Response, status: int) -> dict[str, Any]:
    """Checks the protocol's envelope and gives the error in it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"] == answer.headers["request-id"]
    told: dict[str, Any] = answer.json()
    error: dict[str, Any] = told["error"]
    if not path.startswith(MESSAGES):
        assert told.keys() == {"error"}
        assert error.keys() == {"message", "type", "param", "code"}
    else:
        assert told.keys() == {"type", "error", "request_id"}
        assert told["type"] == "error"
        assert error.keys() == {"type", "message"}
    assert error["message"]
    assert not LEAKS.search(error["message"]), error["message"]
    return error


def serves(stack: Stack) -> bool:
    """Whether a good request is answered whole."""
    with connected(stack) as client:
        answer = client.post(CHAT, json=stack.chat(max_tokens=3, ignore_eos=True))
    return bool(answer.json()["usage"]["completion_tokens"] == 3)
