"""A codec that dies leaves nothing behind in router and engine."""

from __future__ import annotations

import asyncio

import httpx

from services.router.fleet.probe import REQUEST_ID as PROBE
from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, Launcher, simulated, stack_of
from tests.waiting import until

REQUESTS = 4


async def test_generations_of_a_killed_codec_are_cancelled_and_their_blocks_freed(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    slow = simulated(model_folder, simulation={"step_us": 20_000})
    with stack_of(launcher, [slow], model_folder) as stack:
        engine = stack.engines[0]
        body = stack.chat(max_tokens=5000, ignore_eos=True)
        async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as client:
            asked = [
                asyncio.ensure_future(client.post("/v1/chat/completions", json=body))
                for _ in range(REQUESTS)
            ]
            await until(lambda: engine.describe().load.running == REQUESTS)
            stack.codec.process.kill()
            await until(lambda: not engine.describe().load.running)
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(answer, httpx.TransportError) for answer in answers)
        load = engine.describe().load
        assert load.waiting == load.outstanding_tokens == 0
        assert load.free_blocks + load.cached_blocks == load.total_blocks
        for service in (engine, stack.router):
            ended = service.lines(message="generation ended")
            ends = [line["end"] for line in ended if line["request_id"] != PROBE]
            assert ends == ["cancelled: client_gone"] * REQUESTS
