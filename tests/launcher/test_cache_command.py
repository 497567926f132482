"""An operator switches, flushes and watches caches by the command line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from services.launcher.cache_command import operate
from services.router.app import Router
from services.shared.errors import FailedPrecondition
from tests.engine.harness import simulated
from tests.engine.served import served
from tests.router.fleet_of_servers import Servers, router_over, servers
from tests.router.servicer import ScriptedEngine

Told = tuple[int, str, str]
Run = Callable[..., Awaitable[Told]]


@pytest.fixture
async def fleet() -> AsyncIterator[tuple[Router, Servers]]:
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(servers(ScriptedEngine(), ScriptedEngine()))
        running, _ = await stack.enter_async_context(router_over(fleet.addresses))
        yield running, fleet


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; gives its status and what it said."""

    async def told(*arguments: str) -> Told:
        status = await operate(arguments)
        said = capfd.readouterr()
        return status, said.out, said.err

    return told


@pytest.mark.parametrize("state", ["off", "on"])
async def test_a_fleet_is_switched(fleet: tuple[Router, Servers], run: Run, state: str) -> None:
    at = ("--at", fleet[0].address)
    assert await run(state, *at) == (0, f"service cache: {state}\n", "")
    _, out, _ = await run(state, *at, "--json")
    assert json.loads(out) == {"enabled": state == "on"}


async def test_what_a_flush_dropped_is_told(fleet: tuple[Router, Servers], run: Run) -> None:
    status, out, _ = await run("flush", "--service", "--at", fleet[0].address)
    assert status == 0
    assert out == "dropped 6 blocks of the pool, 0 of host memory, 0 of the service cache\n"


async def test_a_refused_flush_is_one_line(fleet: tuple[Router, Servers], run: Run) -> None:
    fleet[1].engines[0].flush_fails = FailedPrecondition("not now")
    status, out, err = await run("flush", "--at", fleet[0].address)
    assert (status, out) == (1, "")
    assert err.endswith(": not now\n")
    assert err.count("\n") == 1


async def test_figures_of_a_fleet_have_a_line_for_each_replica(
    fleet: tuple[Router, Servers], run: Run
) -> None:
    router, engines = fleet
    status, out, _ = await run("stats", "--at", router.address)
    assert status == 0
    assert "blocks: 0 free + 0 owned + 0 leased + 6 cached = 6 of 6" in out
    for address in engines.addresses:
        (words,) = [line.split() for line in out.splitlines() if address in line]
        assert words[-2:] == ["3", "3"]
    _, out, _ = await run("stats", "--at", router.address, "--json")
    told = json.loads(out)
    assert told["blocks"]["total"] == 6
    assert told["replicas"].keys() == set(engines.addresses)


async def test_figures_of_an_engine_have_no_replicas(run: Run) -> None:
    async with served(simulated()) as engine:
        status, out, _ = await run("stats", "--at", engine.address)
        assert status == 0
        assert "replica" not in out
        assert "blocks: 64 free + 0 owned + 0 leased + 0 cached = 64 of 64" in out
        _, out, _ = await run("stats", "--at", engine.address, "--json")
        assert json.loads(out)["replicas"] == {}


async def test_where_nothing_is_the_command_says_so(run: Run) -> None:
    async with servers(ScriptedEngine()) as gone:
        (address,) = gone.addresses
    status, out, err = await run("stats", "--at", address)
    assert (status, out) == (1, "")
    said = f"tokenway cache: no router or engine answers at {address}; name one by --at host:port\n"
    assert err.endswith(said)


async def test_a_router_without_replicas_is_not_taken_for_none(run: Run) -> None:
    async with servers(ScriptedEngine()) as gone:
        (address,) = gone.addresses
    async with router_over([address], ready=0) as (router, _):
        status, _, err = await run("stats", "--at", router.address)
    assert status == 1
    assert err.endswith("tokenway cache: no replica is reachable\n")
