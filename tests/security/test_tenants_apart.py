"""What one tenant can learn of another, or take from it, through what engines and codec keep."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.codec.conversation import Conversation, Role, Text, Turn
from services.codec.prompt import PromptEncoder
from services.engine.blocks import BlockPool
from services.engine.eviction import TENANTS_SHARE
from services.engine.parts import Parts
from services.engine.simulated import CostModel, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.shared.model_folder import ModelFolder
from services.shared.stream.events import Finished
from services.shared.stream.generation import Generation, QualityOfService, Stopping
from tests.engine.harness import Harness, simulated
from tests.engine.served import Served, served

VICTIM, SPY = "acme", "spy"
PROBES = 200
PROMPT = 40
BLOCK = 4
CERTAIN = 4.5
"""Standard deviations: chance alone is there once in 150,000 runs."""


def timed_parts() -> Parts:
    """Each token takes so long that a cached prompt would be told from one that is not."""
    blocks = 2 * PROBES * PROMPT // BLOCK
    memory = SimulatedMemory(blocks, BLOCK)
    runner = SimulatedRunner(range(3, 1000), memory, CostModel(step_us=0, token_us=250))
    parts = simulated(blocks, BLOCK)
    return replace(parts, pool=BlockPool(blocks, BLOCK), memory=memory, runner=runner)


def prompt(number: int) -> list[int]:
    return [3 + number, *(10 + (number * 7 + at) % 900 for at in range(PROMPT - 1))]


async def ask(subject: Served, tenant: str, number: int) -> tuple[float, int]:
    """Seconds until the first token of a prompt of that number, and cached tokens as told."""
    request = pb.GenerateRequest(
        request_id="r",
        prompt_ids=prompt(number),
        stopping=types.Stopping(max_tokens=1),
        quality_of_service=types.QualityOfService(tenant=tenant),
    )
    began, first, cached = time.perf_counter(), 0.0, 0
    async for event in subject.stream.Generate(request):
        if event.WhichOneof("event") == "tokens":
            first = time.perf_counter() - began
        elif event.WhichOneof("event") == "accepted":
            cached = sum(value for _, value in event.accepted.cached_tokens.ListFields())
    return first, cached


def apart(some: Sequence[float], others: Sequence[float]) -> float:
    """How far two samples' ranks are from those of one, in standard deviations (Mann, Whitney)."""
    ranks = {value: rank for rank, value in enumerate(sorted({*some, *others}), start=1)}
    count, other = len(some), len(others)
    surplus = sum(ranks[value] for value in some) - count * (count + other + 1) / 2
    return float(surplus / (count * other * (count + other + 1) / 12) ** 0.5)


async def test_two_hundred_probes_find_nothing_of_another_tenant() -> None:
    """The same probes by the tenant itself find what it sent, so they would have found it."""
    choose = random.Random(11)  # noqa: S311  # a test's choice
    times: dict[tuple[str, bool], list[float]] = {}
    told = dict.fromkeys((SPY, VICTIM), 0)
    async with served(timed_parts()) as subject:
        for number in range(PROBES):
            is_sent = choose.random() < 0.5
            await ask(subject, VICTIM, number if is_sent else PROBES + number)
            for tenant in (SPY, VICTIM):
                took_s, cached = await ask(subject, tenant, number)
                times.setdefault((tenant, is_sent), []).append(took_s)
                told[tenant] += cached
    assert apart(times[VICTIM, True], times[VICTIM, False]) < -CERTAIN
    assert abs(apart(times[SPY, True], times[SPY, False])) < CERTAIN
    assert told[VICTIM] > PROBES * PROMPT // 4
    assert told[SPY] == 0


def generation(tenant: str, number: int, tokens: int = 32) -> Generation:
    return Generation(
        request_id="r",
        prompt_ids=[
            10 + number % 900,
            *(10 + (number * 13 + at) % 900 for at in range(tokens - 1)),
        ],
        stopping=Stopping(max_tokens=1),
        quality_of_service=QualityOfService(tenant=tenant),
    )


def cached(harness: Harness, one: Generation) -> int:
    key = harness.add(one)
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Finished)
    return end.usage.cached_tokens


@pytest.mark.parametrize("floods", [1, 3])
def test_a_flood_leaves_a_neighbour_its_share_of_the_pool(floods: int) -> None:
    """Also where the flood is older than what the neighbour keeps, and comes from several."""
    harness = Harness(simulated(blocks=128, size=4))
    share = 128 // TENANTS_SHARE // (floods + 1) * 4
    mine = [generation(VICTIM, number, tokens=share // 4) for number in range(3)]
    flood = [generation(f"{SPY}{number % floods}", 100 + number) for number in range(60)]
    harness.outputs(flood[:20])
    for one in mine:
        cached(harness, one)
    harness.outputs(flood)
    harness.parts.pool.audit()
    found = [cached(harness, one) for one in mine]
    assert found == [len(one.prompt_ids) // 4 * 4 - 4 for one in mine]


def test_text_that_another_tenant_sent_is_encoded_anew(model_folder: ModelFolder) -> None:
    encoder = PromptEncoder(model_folder, cache_bytes=2**20)
    secret = Conversation((Turn(Role.USER, (Text("the launch is on the ninth of May"),)),))

    def unknown_to(tenant: str) -> int:
        before = encoder.pieces.misses
        encoder.encode(secret, tenant)
        return encoder.pieces.misses - before

    fresh: Any = unknown_to(VICTIM)
    assert fresh > 0
    assert unknown_to(VICTIM) == 0
    assert unknown_to(SPY) == fresh
