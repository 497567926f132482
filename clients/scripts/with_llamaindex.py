"""LlamaIndex through its class for servers like OpenAI's."""

from __future__ import annotations

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from question import LIMITS, MODEL, PROMPT, SECRET, look_up, say

LLM = OpenAILike(
    model=MODEL,
    api_base=f"{os.environ['URL']}/v1",
    api_key="unused",
    is_chat_model=True,
    is_function_calling_model=True,
)


def ask() -> None:
    messages = [ChatMessage(role="user", content=PROMPT)]
    say(LLM.chat(messages, **LIMITS).message.content)
    chunks = LLM.stream_chat(messages, **LIMITS)
    say("".join(chunk.delta or "" for chunk in chunks))


async def call() -> None:
    agent = FunctionAgent(tools=[look_up], llm=LLM)
    say(str(await agent.run(PROMPT)))


if SECRET:
    asyncio.run(call())
else:
    ask()
