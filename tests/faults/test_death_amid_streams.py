"""An engine or a router that is killed while answers stream: clean errors, then service again."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from services.shared.model_folder import ModelFolder
from tests.faults.engines import HASTY
from tests.integration.stack import (
    PATIENCE_S,
    Launcher,
    Stack,
    simulated,
    stack_of,
    wait_until_ready,
)
from tests.waiting import until

STREAMS = 4
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


async def streamed(stack: Stack, path: str, begun: asyncio.Semaphore) -> str:
    """A whole stream; releases `begun` with the first token of its answer."""
    body = stack.chat(max_tokens=5000, stream=True)
    told = ""
    async with (
        httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as client,
        client.stream("POST", path, json=body) as answer,
    ):
        assert answer.status_code == 200
        async for text in answer.aiter_text():
            has_begun = '"delta"' in told
            told += text
            if '"delta"' in told and not has_begun:
                begun.release()
    return told


@pytest.mark.parametrize("victim", ["engine0", "router"])
async def test_streams_end_with_an_error_and_the_service_comes_back(
    launcher: Launcher, model_folder: ModelFolder, victim: str
) -> None:
    slow = simulated(model_folder, simulation={"step_us": 20_000})
    with stack_of(launcher, [slow], model_folder, service=HASTY) as stack:
        begun = asyncio.Semaphore(0)
        paths = (CHAT, MESSAGES) * (STREAMS // 2)
        streams = [asyncio.ensure_future(streamed(stack, path, begun)) for path in paths]
        for _ in streams:
            await begun.acquire()
        lost = stack.router if victim == "router" else stack.engines[0]
        lost.process.kill()
        for path, told in zip(paths, await asyncio.gather(*streams), strict=True):
            last = told.rstrip().splitlines()
            if path == MESSAGES:
                assert last[-2] == "event: error"
            else:
                assert '"error":' in told.partition('"delta"')[2]
            assert "127.0.0.1" not in told
        async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as client:
            refused = await client.post(CHAT, json=stack.chat(max_tokens=2))
            assert refused.status_code == 503
            assert "127.0.0.1" not in refused.text
            if victim == "router":
                engine = stack.engines[0]
                await until(lambda: not engine.describe().load.running)
            port = int(lost.grpc.rpartition(":")[2])
            settings = slow if victim == "engine0" else {"replicas": [stack.engines[0].grpc]}
            with launcher.running(victim, {**settings, "server": {"port": port}}):
                await asyncio.to_thread(wait_until_ready, stack)
                answer = await client.post(CHAT, json=stack.chat(max_tokens=2))
                assert answer.status_code == 200
