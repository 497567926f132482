"""Answers of the real model are equal to the last digit, wherever the KV of their prompts was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher
from tests.kv.books import HOST, PEER, SERVICE
from tests.kv.proof import CLUSTER, DECODE, ERASURE, PREFILL, SINGLE, Proof, proof_of

pytestmark = pytest.mark.timeout(600)  # on a machine that is busy with more than this


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder) -> Iterator[Proof]:
    launcher = Launcher(folder=tmp_path_factory.mktemp("outputs"), environ={})
    with proof_of(launcher, model_folder) as running:
        asyncio.run(running.begin())
        yield running


async def test_blocks_that_the_pool_gave_up_come_from_host_memory(proof: Proof) -> None:
    await proof.computes("host", SINGLE)
    await proof.finds("host", SINGLE, HOST)


@pytest.mark.parametrize("engine", [SINGLE, CLUSTER, ERASURE], ids=["single", "cluster", "erasure"])
async def test_blocks_come_from_a_store_of_each_spread(proof: Proof, engine: int) -> None:
    await proof.computes(f"store {engine}", engine)
    await proof.leaves(engine)
    await proof.finds(f"store {engine}", engine, SERVICE)


async def test_a_fresh_engine_finds_what_another_left_in_the_file_of_both(proof: Proof) -> None:
    await proof.computes("file", PREFILL)
    await proof.leaves(PREFILL)
    await proof.cluster.lean_on(DECODE)
    await proof.finds("file", DECODE, SERVICE)


async def test_an_engine_fetches_what_another_has_computed(proof: Proof) -> None:
    await proof.finds_at_another("peer", CLUSTER, other=ERASURE)


async def test_an_engine_for_outputs_goes_on_from_prompts_that_another_computes(
    proof: Proof,
) -> None:
    await proof.cluster.weigh([0, 0, 0, 1, 1])
    await proof.finds("apart", DECODE, PEER)


# These come last: who dies here stays dead.
@pytest.mark.parametrize(
    ("victim", "decode"), [(DECODE, DECODE), (PREFILL, ERASURE)], ids=["decode", "prefill"]
)
async def test_an_engine_that_dies_amid_transfers_is_not_missed(
    proof: Proof, victim: int, decode: int
) -> None:
    await proof.survives(f"death {victim}", victim, decode)
