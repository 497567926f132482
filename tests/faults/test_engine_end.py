"""How an engine ends: told to, it finishes what runs; broken, it does not hang."""

from __future__ import annotations

import asyncio

import httpx

from services.shared.model_folder import ModelFolder
from tests.faults.engines import HASTY
from tests.integration.stack import PATIENCE_S, Launcher, Stack, simulated, stack_of

STREAMS = 4
TOKENS = 60
BROKEN_LOOP = """
import sys
from services.engine import progress
from services.engine.__main__ import main

def broken(*_):
    raise ValueError("a bug in the step loop")

progress.Progress.stepped = broken
sys.exit(main(sys.argv[1:]))
"""


async def streamed(stack: Stack, begun: asyncio.Semaphore) -> str:
    """A whole stream; releases `begun` with its first bytes."""
    options = {"include_usage": True}
    body = stack.chat(max_tokens=TOKENS, ignore_eos=True, stream=True, stream_options=options)
    told = ""
    async with (
        httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        async for text in answer.aiter_text():
            if not told:
                begun.release()
            told += text
    return told


async def test_running_streams_end_whole_after_sigterm(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    slow = simulated(model_folder, simulation={"step_us": 20_000})
    with stack_of(launcher, [slow], model_folder) as stack:
        begun = asyncio.Semaphore(0)
        streams = [asyncio.ensure_future(streamed(stack, begun)) for _ in range(STREAMS)]
        for _ in range(STREAMS):
            await begun.acquire()
        status = asyncio.ensure_future(asyncio.to_thread(stack.engines[0].end))
        for told in await asyncio.gather(*streams):
            assert f'"completion_tokens":{TOKENS}' in told
            assert told.endswith("data: [DONE]\n\n")
        assert await status == 0
        async with httpx.AsyncClient(base_url=stack.url) as client:
            answer = await client.post("/v1/chat/completions", json=stack.chat())
        assert answer.status_code == 503


async def test_a_bug_of_the_step_loop_ends_the_process_at_once(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    patient = {**simulated(model_folder), "service": {"limits": {"drain_timeout_s": 3600}}}
    broken = ("-c", BROKEN_LOOP)
    with stack_of(launcher, [patient], model_folder, broken, service=HASTY) as stack:
        async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as client:
            answer = await client.post("/v1/chat/completions", json=stack.chat(max_tokens=8))
        assert answer.status_code == 503
        assert "bug" not in answer.text
        status = await asyncio.to_thread(stack.engines[0].process.wait, PATIENCE_S)
        assert status not in (0, 2)
        assert "a bug in the step loop" in stack.engines[0].log.read_text()
