"""Pydantic AI; the argument names the provider."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent
from question import LIMITS, MODEL, PROMPT, SECRET, look_up, say

NAME = f"{sys.argv[1]}:{MODEL}"
SETTINGS: Any = {} if SECRET else LIMITS


async def main() -> None:
    agent = Agent(NAME, model_settings=SETTINGS, tools=[look_up] if SECRET else [])
    say((await agent.run(PROMPT)).output)
    async with agent.run_stream(PROMPT) as run:
        say(await run.get_output())


asyncio.run(main())
