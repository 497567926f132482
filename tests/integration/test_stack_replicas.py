"""A replica that dies takes no request with it, and serves again when it is back."""

from __future__ import annotations

import asyncio

import httpx

from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, Launcher, simulated, stack_of, wait_until_ready
from tests.waiting import until

REQUESTS = 16
CHAT = "/v1/chat/completions"


async def test_requests_of_a_replica_that_dies_before_their_first_token_end_elsewhere(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    endless = simulated(model_folder, simulation={"step_us": 1e9})
    engines = [endless, simulated(model_folder)]
    with stack_of(launcher, engines, model_folder) as stack:
        lost = stack.engines[0]
        body = stack.chat(max_tokens=8, ignore_eos=True)
        async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as client:
            asked = [asyncio.ensure_future(client.post(CHAT, json=body)) for _ in range(REQUESTS)]
            await until(lambda: len(lost.lines(message="prompt received")) >= 2)
            lost.process.kill()
            answers = [await answer for answer in asked]
            assert {answer.json()["usage"]["completion_tokens"] for answer in answers} == {8}
            ended = stack.router.lines(message="generation ended")
            assert len(ended) == REQUESTS
            assert {line["replica"] for line in ended} == {stack.engines[1].grpc}
            assert max(line["attempts"] for line in ended) == 2

            port = int(lost.grpc.rpartition(":")[2])
            again = {**simulated(model_folder), "server": {"port": port}}
            with launcher.running("engine0", again):
                await asyncio.to_thread(wait_until_ready, stack)
                seen = len(lost.lines(message="prompt received"))
                together = (client.post(CHAT, json=body) for _ in range(REQUESTS))
                assert {answer.status_code for answer in await asyncio.gather(*together)} == {200}
                assert len(lost.lines(message="prompt received")) > seen
