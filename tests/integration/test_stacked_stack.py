"""Two clusters behind one entry, all as processes: a client of HTTP sees one whole answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

import httpx

from services.shared.model_folder import ModelFolder
from tests.faults.answer import streamed
from tests.integration.stack import PATIENCE_S, Launcher, Service, simulated
from tests.waiting import until

CHAT = "/v1/chat/completions"
TOKENS = 200
PROBE_TOKENS = 2
SLOW = {"step_us": 5000, "token_us": 5}


def started(launcher: Launcher, model: ModelFolder, running: ExitStack) -> Sequence[Service]:
    """The codec, the router that is its entry, and the two routers behind that."""
    clusters = []
    for number in range(2):
        settings = simulated(model, simulation=SLOW)
        engine = running.enter_context(launcher.running(f"engine{number}", settings))
        behind = {"replicas": [engine.grpc]}
        clusters.append(running.enter_context(launcher.running(f"router{number}", behind)))
    above = {"replicas": [one.grpc for one in clusters]}
    entry = running.enter_context(launcher.running("router2", above))
    door = {
        "server": {"port": 0, "grpc_port": 0},
        "inference_engine": {"endpoint": entry.grpc},
        "executor": {"model_path": str(model.path)},
    }
    return (running.enter_context(launcher.running("codec", door)), entry, *clusters)


async def test_a_cluster_that_dies_in_the_middle_of_an_answer_changes_no_byte_of_it(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    with ExitStack() as running:
        codec, entry, *clusters = await asyncio.to_thread(started, launcher, model_folder, running)
        body = {
            "model": model_folder.name,
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": TOKENS,
            "seed": 7,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        url = f"http://{codec.doors['http']}"
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
            await until(lambda: _ready(url))
            await until(lambda: entry.describe().load.slots == sum(map(_slots, clusters)))
            undisturbed = await client.post(CHAT, json=body)
            await until(lambda: not any(map(_outstanding, clusters)))
            text, killed = "", 0
            async with client.stream("POST", CHAT, json=body) as answer:
                async for piece in answer.aiter_text():
                    text += piece
                    if not killed and text.count("data: ") > TOKENS // 10:
                        killed = kill_the_busy(clusters)
        assert killed == 1
        told = streamed(200, text)
        assert told == streamed(200, undisturbed.text)
        assert told.complete
        assert told.tokens == TOKENS
        ended = entry.lines(message="generation ended")
        assert [line["attempts"] for line in ended] == [1, 2]


def kill_the_busy(routers: Sequence[Service]) -> int:
    """Of those that carry more than a probe; returns how many there were."""
    busy = [one for one in routers if _outstanding(one) > PROBE_TOKENS]
    for one in busy:
        one.process.kill()
    return len(busy)


def _ready(url: str) -> bool:
    return httpx.get(f"{url}/readyz").status_code == 200


def _outstanding(router: Service) -> int:
    return router.describe().load.outstanding_tokens


def _slots(router: Service) -> int:
    return router.describe().load.slots
