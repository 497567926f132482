"""Equal prompts of two tenants never share a block, in any tier, unless all share with all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from services.engine.kv.cache_settings import Sharing
from services.engine.kv.tier import Tier
from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher
from tests.kv.books import at_rest
from tests.kv.caller import NOBODY, Caller
from tests.kv.commons import EMBEDDED, OTHER_EMBEDDED, REDIS, Commons, commons_of
from tests.kv.token_door import Told

ONE = Caller(tenant="one")
TWO = Caller(tenant="two")
CACHED = 96
"""Tokens of a prompt that a cache can give."""

Ask = Callable[[Commons, Caller, Sequence[int]], Awaitable[Told]]


@dataclass(frozen=True, slots=True)
class Way:
    """How a prompt's blocks get to one tier and no nearer one, and where they are found there."""

    tier: Tier
    bring: Ask
    ask: Ask


def at(engine: int) -> Ask:
    return lambda commons, caller, prompt: commons.ask(engine, caller, prompt)


async def known(commons: Commons, caller: Caller, prompt: Sequence[int]) -> Told:
    told = await commons.ask(EMBEDDED, caller, prompt)
    await commons.is_known(EMBEDDED, caller, prompt)
    return told


async def displaced(commons: Commons, caller: Caller, prompt: Sequence[int]) -> Told:
    told = await commons.ask(EMBEDDED, caller, prompt)
    await commons.displace(EMBEDDED, caller)
    return told


def forgotten(engine: int) -> Ask:
    async def bring(commons: Commons, caller: Caller, prompt: Sequence[int]) -> Told:
        told = await commons.ask(engine, caller, prompt)
        await commons.forget(engine, caller, prompt)
        return told

    return bring


WAYS = {
    "device": Way(Tier.DEVICE, at(EMBEDDED), at(EMBEDDED)),
    "host": Way(Tier.HOST, displaced, at(EMBEDDED)),
    "peer by the router": Way(Tier.PEER, known, at(OTHER_EMBEDDED)),
    "peer by a hint": Way(Tier.PEER, at(EMBEDDED), Commons.ask_with_hint),
    "embedded": Way(Tier.SERVICE, forgotten(EMBEDDED), at(OTHER_EMBEDDED)),
    "redis": Way(Tier.SERVICE, forgotten(REDIS), at(REDIS)),
}


@pytest.fixture(scope="module")
def commons(
    tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder
) -> Iterator[Commons]:
    launcher = Launcher(folder=tmp_path_factory.mktemp("tenants"), environ={})
    with commons_of(launcher, model_folder, Sharing.TENANT) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder
) -> Iterator[Commons]:
    launcher = Launcher(folder=tmp_path_factory.mktemp("shared"), environ={})
    with commons_of(launcher, model_folder, Sharing.GLOBAL) as fleet:
        yield fleet


def found(told: Told) -> dict[Tier, int]:
    """Its cached tokens by tier, where there are any."""
    return {tier: tokens for tier, tokens in zip(Tier, told.by_tier, strict=True) if tokens}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ONE, TWO),
        (NOBODY, ONE),
        (Caller(tenant="one", salt=b"a"), Caller(tenant="one", salt=b"b")),
    ],
    ids=["two tenants", "a tenant and nobody", "two salts"],
)
async def test_another_finds_nothing_where_one_finds_all(
    commons: Commons, way: Way, one: Caller, two: Caller
) -> None:
    prompt = commons.new_prompt()
    first = await way.bring(commons, one, prompt)
    assert found(first) == {}
    other = await way.ask(commons, two, prompt)
    assert found(other) == {}
    again = await way.ask(commons, one, prompt)
    assert found(again) == {way.tier: CACHED}
    assert first.ids == other.ids == again.ids
    await at_rest(engine.address for engine in commons.cluster.engines)


@pytest.mark.parametrize("engine", [EMBEDDED, REDIS], ids=["embedded", "redis"])
async def test_a_store_has_equal_prompts_of_two_tenants_under_different_addresses(
    commons: Commons, engine: int
) -> None:
    prompt = commons.new_prompt()
    await commons.ask(engine, ONE, prompt)
    await commons.forget(engine, ONE, prompt)
    assert commons.stored(engine, TWO, prompt) == 0
    assert found(await commons.ask(engine, TWO, prompt)) == {}
    await commons.forget(engine, TWO, prompt)
    both = [caller.addresses(prompt, commons.described) for caller in (ONE, TWO)]
    assert set(both[0]).isdisjoint(both[1])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_where_all_share_another_finds_what_one_has_left(shared: Commons, way: Way) -> None:
    prompt = shared.new_prompt()
    first = await way.bring(shared, ONE, prompt)
    assert found(first) == {}
    other = await way.ask(shared, TWO, prompt)
    assert found(other) == {way.tier: CACHED}
    assert other.ids == first.ids
    await at_rest(engine.address for engine in shared.cluster.engines)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_salts_keep_blocks_apart_even_where_all_share(shared: Commons, way: Way) -> None:
    prompt = shared.new_prompt()
    await way.bring(shared, Caller(tenant="one", salt=b"a"), prompt)
    other = await way.ask(shared, Caller(tenant="one", salt=b"b"), prompt)
    assert found(other) == {}
