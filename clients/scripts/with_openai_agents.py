"""The OpenAI Agents SDK, which speaks Responses."""

from __future__ import annotations

import asyncio

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from question import LIMITS, MODEL, PROMPT, SECRET, look_up, say

SETTINGS = ModelSettings() if SECRET else ModelSettings(**LIMITS)


async def main() -> None:
    tools = [function_tool(look_up)] if SECRET else []
    agent = Agent(name="agent", model=MODEL, tools=list(tools), model_settings=SETTINGS)
    say(str((await Runner.run(agent, PROMPT)).final_output))
    streamed = Runner.run_streamed(agent, PROMPT)
    async for _ in streamed.stream_events():
        pass
    say(str(streamed.final_output))


set_tracing_disabled(disabled=True)
asyncio.run(main())
