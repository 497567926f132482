"""An operator looks at a router's work by the command line."""

from __future__ import annotations

import json

import pytest

from services.launcher.top import main, watch
from services.shared.stream.generation import Generation, QualityOfService
from services.shared.stream.source import Submission
from tests.router.fleet_of_servers import router_over, servers
from tests.router.servicer import ScriptedEngine

TENANTS = {"acme": 3, "globex": 1}


async def test_one_moment_has_replicas_and_tenants(capfd: pytest.CaptureFixture[str]) -> None:
    async with (
        servers(ScriptedEngine(), plays=False) as fleet,
        router_over(fleet.addresses) as (router, _),
    ):
        for tenant, count in TENANTS.items():
            for number in range(count):
                generation = Generation(
                    request_id=f"{tenant}-{number}",
                    prompt_ids=[1, 2, 3],
                    quality_of_service=QualityOfService(tenant=tenant),
                )
                router.relay.submit(Submission(generation, "", lambda _: None))
        told = ["--at", router.address, "--certificates", "none"]
        assert await watch([*told, "--json"]) == 0
        answer = json.loads(capfd.readouterr().out)
        assert {one["name"]: one["running"] for one in answer["tenants"]} == TENANTS
        assert [one["address"] for one in answer["replicas"]] == fleet.addresses
        assert await watch(told) == 0
        shown = capfd.readouterr().out
        assert shown.startswith("4 running, 0 waiting")
        assert "acme" in shown


def test_where_nobody_is_one_line_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--at", "127.0.0.1:1", "--certificates", "none"]) == 1
    assert capfd.readouterr().err.startswith("tokenway top: no router answers at 127.0.0.1:1")


def test_an_interval_has_bounds(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--interval", "0"])
    assert "the interval must be between 0.1 and 3600, got 0" in capfd.readouterr().err
