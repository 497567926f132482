"""Random bodies over HTTP: answers or refusals in the right envelope, never a 500 or a leak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=6)
    | st.sampled_from(["user", "assistant", "system", "tool", "text", "function", "<|im_end|>"])
)
FIELDS = (
    "role content type text name id input function arguments tool_calls tool_call_id model stop "
    "messages system tools tool_choice stream stream_options metadata thinking response_format "
    "temperature top_p top_k seed n logit_bias min_tokens stop_token_ids cache_salt user "
    "prompt instructions reasoning include chat_template_kwargs parallel_tool_calls logprobs "
    "service_tier max_completion_tokens"
)
NAMES = st.sampled_from(FIELDS.split())
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
MESSAGE = st.dictionaries(st.sampled_from(["role", "content", "name", "tool_calls"]), JSON)


@pytest.fixture(scope="module")
def client(simulated_stack: Stack) -> Iterator[httpx.Client]:
    with connected(simulated_stack) as door:
        yield door


WANTED = {
    CHAT: "choices",
    MESSAGES: "content",
    COUNT: "input_tokens",
    "/v1/responses": "output",
    "/v1/responses/input_tokens": "input_tokens",
    "/v1/completions": "choices",
    "/tokenize": "tokens",
}
FUZZED = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def check(path: str, answer: httpx.Response) -> None:
    if answer.status_code != 200:
        assert answer.status_code in {400, 404}, answer.text
        refused(path, answer, answer.status_code)
    elif answer.headers["content-type"].startswith("text/event-stream"):
        assert "error" not in answer.text
    else:
        assert WANTED[path] in answer.json()


@FUZZED
@given(
    path=st.sampled_from([*PATHS, *OTHER_PATHS]),
    changes=st.dictionaries(NAMES, JSON, max_size=3),
    messages=st.none() | st.lists(MESSAGE, max_size=3),
)
def test_any_json(
    simulated_stack: Stack,
    client: httpx.Client,
    path: str,
    changes: dict[str, Any],
    messages: list[Any] | None,
) -> None:
    asked = {**simulated_stack.chat(), "input": "hi", "prompt": "hi"}
    body = {**asked, **changes, "max_tokens": 3, "max_output_tokens": 3}
    body.pop("max_completion_tokens", None)
    if messages is not None:
        body["messages"] = messages
    check(path, client.post(path, content=json.dumps(body).encode()))


@FUZZED
@given(
    path=st.sampled_from([*PATHS, *OTHER_PATHS]), at=st.integers(0, 300), junk=st.binary(max_size=8)
)
def test_any_bytes(
    simulated_stack: Stack, client: httpx.Client, path: str, at: int, junk: bytes
) -> None:
    asked = simulated_stack.chat(max_tokens=3, stop=["x"], seed=5, stream=True)
    body = json.dumps({"input": "hi", "prompt": "hi", "max_output_tokens": 3, **asked}).encode()
    check(path, client.post(path, content=body[:at] + junk + body[at + len(junk) :]))


def test_a_good_request_is_served_after_all_of_them(simulated_stack: Stack) -> None:
    assert serves(simulated_stack)
