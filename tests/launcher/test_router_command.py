"""An operator asks a router and operates it by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from services.launcher.router_command import operate
from services.router.app import Router
from tests.router.fleet_of_servers import router_over, servers
from tests.router.servicer import ScriptedEngine

Told = tuple[int, str, str]
Run = Callable[..., Awaitable[Told]]


@pytest.fixture
async def router() -> AsyncIterator[Router]:
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(servers(ScriptedEngine(), ScriptedEngine()))
        running, _ = await stack.enter_async_context(router_over(fleet.addresses))
        yield running


@pytest.fixture
def run(router: Router, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command against the router; gives its status and what it said."""

    async def told(*arguments: str) -> Told:
        status = await operate([*arguments, "--at", router.address])
        said = capfd.readouterr()
        return status, said.out, said.err

    return told


def names(router: Router) -> list[str]:
    return sorted(replica.name for replica in router.fleet)


async def test_a_list_has_a_line_for_each_replica(router: Router, run: Run) -> None:
    status, out, _ = await run("list")
    assert status == 0
    head, _, *lines = [line for line in out.splitlines() if line.strip()]
    columns = "replica state role weight pool version running tokens load age blocks why"
    assert " ".join(head.split()) == columns
    for name, line in zip(names(router), lines, strict=True):
        assert line.split()[:6] == [name, "ready", "both", "1", "all", "weights"]


async def test_a_list_for_programs_is_json(router: Router, run: Run) -> None:
    _, out, _ = await run("list", "--json")
    told = json.loads(out)
    assert [replica["address"] for replica in told["replicas"]] == names(router)
    assert told["replicas"][0]["status"] == "REPLICA_STATUS_READY"
    assert told["replicas"][0]["weight"] == 1
    assert told["waiting"] == 0


async def test_a_replica_is_drained_and_undrained(router: Router, run: Run) -> None:
    name = names(router)[0]
    _, out, _ = await run("drain", name)
    assert [name, "draining"] in [line.split()[:2] for line in out.splitlines()]
    assert router.fleet.ready() == names(router)[1:]
    _, out, _ = await run("undrain", name)
    assert [name, "ready"] in [line.split()[:2] for line in out.splitlines()]


async def test_a_weight_is_set(router: Router, run: Run) -> None:
    name = names(router)[1]
    status, _, _ = await run("weight", name, "0.25")
    assert status == 0
    assert router.fleet[name].weight == 0.25


async def test_a_decision_is_explained_for_ids_and_for_a_file(
    router: Router, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "prompt"
    path.write_text("[1, 2,\n3]\n")
    status, out, _ = await run("explain", "--prompt-ids", "1,2,3", "--session", "s")
    assert status == 0
    first = out.splitlines()[0]
    assert first.split(": ")[0] in names(router)
    assert "home of its session" in first
    assert first.endswith("; 2 ready")
    assert "policy affinity" in out
    _, out, _ = await run("explain", "--prompt-file", str(path), "--json")
    told = json.loads(out)
    assert [option["cost"] for option in told["options"]] == [4.5, 4.5]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["drain", "x:1"], "there is no replica 'x:1'; there is 127.0.0.1:"),
        (["weight", "x:1", "2000"], "weight must be 0 to 1000.0, got 2000.0"),
        (["explain", "--prompt-ids", "1,b"], "a prompt must be token IDs, 0 to 4294967295, got 'b"),
        (["explain", "--prompt-ids", "4294967296"], "got '4294967296'"),
        (["explain", "--prompt-ids", ""], "got ''"),
        (["explain", "--prompt-file", "/none"], "No such file"),
        (["explain", "--prompt-ids", "1", "--model", "x"], ""),
    ],
)
async def test_a_fault_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    status, out, err = await run(*arguments)
    if not said:  # told as an explanation
        assert status == 0
        assert out.startswith("no replica: model 'x' is not served here, 'test-model' is")
        return
    assert status == 1
    assert err.startswith("tokenway router: ")
    assert said in err
    assert err.count("\n") == 1


async def test_where_no_router_is_the_command_says_so(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with servers(ScriptedEngine()) as fleet:
        (engine,) = fleet.addresses
        assert await operate(["list", "--at", engine]) == 1
        assert capfd.readouterr().err.endswith(f"tokenway router: {engine} is no router\n")
    assert await operate(["list", "--at", engine]) == 1
    said = f"tokenway router: no router answers at {engine}; name one by --at host:port\n"
    assert capfd.readouterr().err.endswith(said)


def test_without_an_action_a_router_is_run() -> None:
    command = [sys.executable, "-m", "services.launcher", "router", "--config", "/none.yaml"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, check=False, env=environ, timeout=60)  # noqa: S603 ours
    assert ran.returncode == 2
    assert b"/none.yaml cannot be read" in ran.stderr
