"""Outputs of the real model do not depend on who computed the blocks of their prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch

from services.engine.kv.tier import Tier
from services.engine.model.llama import LlamaModel
from services.shared.model_folder import ModelFolder
from services.shared.stream.events import CancelReason
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.harness import Harness
from tests.engine.kv.filling_bed import Bed, filling
from tests.engine.kv.stock import Blocks, Stock, computed_blocks
from tests.engine.real_parts import real_parts
from tests.engine.test_real_outputs import ROOMY, generations
from tests.waiting import until

LENGTHS = (16, 17, 33, 64, 65, 120)


def long_one(number: int, tokens: int) -> Generation:
    """Greedy and seeded in turn; no two share a block."""
    return Generation(
        request_id=f"l{number}",
        prompt_ids=[1, *(500 + 50 * number + index * 7 % 4001 for index in range(tokens - 1))],
        sampling=Sampling(temperature=0.8 if number % 2 else 0.0, seed=number),
        stopping=Stopping(max_tokens=12),
    )


WANTED = [long_one(number, tokens) for number, tokens in enumerate(LENGTHS)]
USABLE = [(tokens - 1) // 16 for tokens in LENGTHS]


@dataclass(frozen=True, slots=True)
class Truth:
    """What another engine computed: blocks, and outputs of its own."""

    model: LlamaModel
    blocks: Blocks
    outputs: list[list[int]]
    neighbours: list[list[int]]


@pytest.fixture(scope="module")
def truth(model_folder: ModelFolder) -> Truth:
    model = LlamaModel.load(model_folder, device=torch.device("cpu"))
    outputs = [Harness(real_parts(model), ROOMY).outputs([one])[0] for one in WANTED]
    neighbours = Harness(real_parts(model), ROOMY).outputs(generations(3))
    return Truth(model, computed_blocks(real_parts(model), WANTED), outputs, neighbours)


def refuse(_: memoryview) -> memoryview:
    raise RuntimeError("a supply's bug")


SUPPLIES: dict[str, tuple[Callable[[Blocks], list[Stock]], list[int]]] = {
    "all": (lambda blocks: [Stock(blocks)], USABLE),
    "some": (lambda blocks: [Stock(blocks, most=2)], [min(2, usable) for usable in USABLE]),
    "one after the other": (
        lambda blocks: [Stock(blocks, Tier.HOST, most=1), Stock(blocks, Tier.PEER)],
        USABLE,
    ),
    "none": (lambda blocks: [Stock(blocks, most=0)], [0] * len(LENGTHS)),
    "raising": (lambda blocks: [Stock(blocks, spoil=refuse)], [0] * len(LENGTHS)),
}


@pytest.mark.parametrize("case", SUPPLIES)
async def test_outputs_are_those_of_who_computes_all(truth: Truth, case: str) -> None:
    """The prompts come while others run."""
    supplies, found = SUPPLIES[case]
    async with filling(real_parts(truth.model), supplies(truth.blocks), ROOMY) as bed:
        running = [bed.ask(one) for one in generations(3)]
        await until(lambda: all(one.events for one in running))
        told = await bed.finish(*WANTED)
        for one in running:
            await one.finished()
    assert [one.ids for one in told] == truth.outputs
    assert [one.ids for one in running] == truth.neighbours
    assert [one.accepted.cached_tokens.total // 16 for one in told] == found


async def test_a_late_supply_changes_nothing(truth: Truth) -> None:
    stock = Stock(truth.blocks, gate=asyncio.Event())
    async with filling(real_parts(truth.model), [stock], ROOMY) as bed:
        late = [bed.ask(one) for one in WANTED]
        await bed.finish(*generations(3))
        stock.gate.set()
        for one in late:
            await one.finished()
    assert [one.ids for one in late] == truth.outputs


async def test_those_that_come_after_cancelled_ones_get_the_same(truth: Truth) -> None:
    stock = Stock(truth.blocks)
    async with filling(real_parts(truth.model, blocks=60), [stock], ROOMY) as bed:
        for _ in range(3):
            await cancelled_somewhere(bed)
        told = await bed.finish(*WANTED)
    assert [one.ids for one in told] == truth.outputs


async def cancelled_somewhere(bed: Bed) -> None:
    """All prompts, each cancelled some time after it was asked."""
    for number, one in enumerate(WANTED):
        asked = bed.ask(replace(one, request_id=f"c{number}"))
        for _ in range(5 * number):
            await asyncio.sleep(0)
        asked.cancel(CancelReason.CLIENT_GONE)
