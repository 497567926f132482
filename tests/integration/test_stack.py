"""The real model behind all services: sensible answers, the same whole and streamed."""

from __future__ import annotations

import anthropic
import openai
import pytest

from tests.integration.stack import PATIENCE_S, Stack

QUESTION = "What is the capital of France?"


def test_chat_completions_answer_the_same_whole_and_streamed(stack: Stack) -> None:
    asked = stack.chat(QUESTION, temperature=0, max_tokens=20)
    with openai.OpenAI(
        base_url=f"{stack.url}/v1", api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        whole = client.chat.completions.create(**asked)
        chunks = list(client.chat.completions.create(**asked, stream=True))
    text = whole.choices[0].message.content
    assert "Paris" in text
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason


def test_messages_answer_the_same_whole_and_streamed(stack: Stack) -> None:
    asked = stack.chat(QUESTION, max_tokens=20) | {"extra_body": {"temperature": 0}}
    with anthropic.Anthropic(
        base_url=stack.url, api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        whole = client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            text = "".join(stream.text_stream)
            assert stream.get_final_message().stop_reason == whole.stop_reason
    assert "Paris" in text
    assert [block.model_dump() for block in whole.content] == [
        {**block, "text": text} for block in [whole.content[0].model_dump()]
    ]


def test_a_conversation_is_remembered_and_its_beginning_is_cached(stack: Stack) -> None:
    turns = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "The capital of France is Paris."},
        {"role": "user", "content": "And what is the capital of Italy?"},
    ]
    asked = stack.chat(temperature=0, max_tokens=20)
    with openai.OpenAI(
        base_url=f"{stack.url}/v1", api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        client.chat.completions.create(**asked | {"messages": turns[:1]})
        answer = client.chat.completions.create(**asked | {"messages": turns})
    assert "Rome" in answer.choices[0].message.content
    assert answer.usage.prompt_tokens_details.cached_tokens >= 16


@pytest.mark.parametrize("seed", [1, 2**63])
def test_a_seed_gives_the_same_answer_again(stack: Stack, seed: int) -> None:
    asked = stack.chat("Tell me a story.", seed=seed, max_tokens=24)
    with openai.OpenAI(
        base_url=f"{stack.url}/v1", api_key="unused", timeout=PATIENCE_S, max_retries=0
    ) as client:
        first, second = (client.chat.completions.create(**asked) for _ in range(2))
    assert first.choices[0].message.content == second.choices[0].message.content
