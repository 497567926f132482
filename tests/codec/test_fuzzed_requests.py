"""Bodies of every kind at every endpoint: never a 500, never a hang, always the envelope."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.codec_bed import MODEL, BedMaker
from tests.examples import examples
from tests.security.http_exchange import LEAKS

EXAMPLES = examples(625)
PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/responses/input_tokens",
    "/tokenize",
    "/detokenize",
)
PATIENCE_S = 60


def words(text: str) -> list[str]:
    return text.split()


WORDS = words(
    """
    user assistant system developer tool function text auto none required any tool_use tool_result
    thinking image_url input_text output_text message reasoning function_call custom namespace
    function_call_output json_schema json_object string object integer enabled adaptive hi a
    """
)
KEYS = words(
    """
    role content type text name id input function arguments parameters input_schema schema
    json_schema call_id tool_call_id tool_use_id output source data media_type enum properties
    format effort summary tools mode strict items anyOf
    """
)
FIELDS = words(
    """
    temperature top_p top_k min_p seed n best_of logprobs top_logprobs max_tokens stop prompt
    max_completion_tokens max_output_tokens min_tokens stream stream_options tools tool_choice
    functions function_call response_format reasoning_effort reasoning text include instructions
    system thinking output_config metadata stop_sequences logit_bias chat_template_kwargs echo
    documents structured_outputs guided_json guided_regex guided_choice guided_grammar suffix
    continue_final_message add_generation_prompt parallel_tool_calls return_token_ids priority
    cache_salt stop_token_ids include_stop_str_in_output skip_special_tokens ignore_eos tokens
    messages input previous_response_id background truncation user prompt_cache_key modalities
    """
)

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 60_000)
    | st.sampled_from([0.5, -1.0, 1e300, 10**30])
    | st.sampled_from(WORDS)
    | st.text(max_size=6)
    | st.sampled_from(["\0", "<|im_end|>", "\ud800", "{", "a" * 300])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=10,
)
VALID: dict[str, Any] = {
    "messages": [{"role": "user", "content": "hi"}],
    "input": "hi",
    "tokens": [1, 2],
    "max_tokens": 3,
}
BODIES = st.tuples(
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4), st.integers(0, 9)
).map(lambda drawn: {"model": MODEL, **(VALID if drawn[1] else {}), **drawn[0]})


def check(path: str, answer: httpx.Response) -> None:
    assert answer.status_code in {200, 400}, (answer.status_code, answer.text)
    assert "Traceback" not in answer.text
    if answer.status_code == 200:
        return
    told = answer.json()
    assert told["error"]["message"]
    assert not LEAKS.search(told["error"]["message"])
    assert ("request_id" in told) == path.startswith("/v1/messages")


def bodies_of(path: str) -> list[bytes]:
    bodies: list[bytes] = []

    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(BODIES)
    def collect(body: dict[str, Any]) -> None:
        # Responses knows a prompt that is kept by the server.
        prompt = {} if "responses" in path else {"prompt": "hi"}
        bodies.append(json.dumps(prompt | body).encode())

    collect()
    return bodies


@pytest.mark.parametrize("path", PATHS)
async def test_any_body_is_answered_or_refused(beds: BedMaker, path: str) -> None:
    """Many at a time, over real connections."""
    bodies = bodies_of(path)
    async with (
        beds.bed(beds.engine(beds.says("fine <tool_call>[]"))) as bed,
        httpx.AsyncClient(base_url=bed.url, timeout=PATIENCE_S) as client,
    ):
        for at in range(0, len(bodies), 16):
            answers = await asyncio.gather(
                *(client.post(path, content=body) for body in bodies[at : at + 16])
            )
            for body, answer in zip(bodies[at : at + 16], answers, strict=True):
                try:
                    check(path, answer)
                except AssertionError as error:
                    error.add_note(body.decode())
                    raise
