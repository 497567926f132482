"""Engines that die or stand still while KV moves between them: no answer shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher, Stack
from tests.kv.asked import long_asked
from tests.kv.books import PEER, hits, misses
from tests.kv.heard import ask_all
from tests.kv.transfer import DECODE, PREFILL, TOKENS, WORDS, Transfers, transfers_of
from tests.kv.transfer_fault import (
    Fault,
    Moment,
    after,
    amid,
    before,
    fault_of,
    killed,
    silenced,
    stopped,
)


@pytest.fixture(scope="module")
def transfers(
    tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder, simulated_stack: Stack
) -> Iterator[Transfers]:
    asked = long_asked(simulated_stack.model, WORDS, TOKENS)
    undisturbed = asyncio.run(ask_all(simulated_stack, asked, "undisturbed"))
    launcher = Launcher(folder=tmp_path_factory.mktemp("transfers"), environ={})
    with transfers_of(launcher, model_folder, undisturbed.heard) as running:
        yield running


async def test_undisturbed_every_block_comes_from_the_engine_for_prompts(
    transfers: Transfers,
) -> None:
    came = await hits(transfers.address(DECODE), PEER)
    await transfers.disturbed(fault_of(transfers, PREFILL, amid, lambda *_: nullcontext()))
    blocks = WORDS // 16 * len(transfers.listeners)
    assert await hits(transfers.address(DECODE), PEER) - came >= blocks
    assert not await misses(transfers.address(DECODE), PEER)


async def test_without_an_engine_for_prompts_those_for_outputs_compute_them(
    transfers: Transfers,
) -> None:
    transfers.engine(PREFILL).kill()
    await transfers.disturbed(nullcontext)


@pytest.mark.parametrize(
    ("fault", "moment"),
    [(killed, before), (killed, amid), (killed, after), (stopped, amid), (silenced, amid)],
    ids=lambda one: one.__name__,
)
async def test_what_the_engine_for_prompts_does_not_send_is_computed(
    transfers: Transfers, fault: Fault, moment: Moment
) -> None:
    missed = sum((await misses(transfers.address(DECODE), PEER)).values())
    await transfers.disturbed(fault_of(transfers, PREFILL, moment, fault))
    if moment is amid:
        assert sum((await misses(transfers.address(DECODE), PEER)).values()) > missed


@pytest.mark.parametrize(
    ("fault", "moment"),
    [(killed, before), (killed, amid), (killed, after), (stopped, amid)],
    ids=lambda one: one.__name__,
)
async def test_what_an_engine_for_outputs_had_goes_on_at_another(
    transfers: Transfers, fault: Fault, moment: Moment
) -> None:
    await transfers.disturbed(fault_of(transfers, DECODE, moment, fault))
    assert transfers.continued()
