"""Where replicas are found, and what an outage of that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.router.connections.discovery import Discovery, Fixed, Name, ReplicaFile, SourceFault
from services.router.demand import Lane
from services.router.replica_spec import ReplicaSpec


def spec(address: str, **options: object) -> ReplicaSpec:
    return ReplicaSpec(address=address, **options)  # type: ignore[arg-type]  # passed on


def resolving(monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str]]) -> None:
    """Names have these addresses; others have none."""

    async def getaddrinfo(_: object, host: str, port: int, **_options: object) -> list[object]:
        if host not in answers:
            raise OSError(-2, "Name or service not known")
        return [
            (10 if ":" in address else 2, 1, 6, "", (address, port)) for address in answers[host]
        ]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


async def test_each_address_of_a_name_is_a_replica_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, {"engines": ["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"]})
    found = await Name(spec("engines:9100", weight=2.0, pool=Lane.LONG)).find()
    assert [one.address for one in found] == [
        "10.0.0.1:9100",
        "10.0.0.2:9100",
        "[fd00::1]:9100",
    ]
    assert {(one.weight, one.pool) for one in found} == {(2.0, Lane.LONG)}


async def test_localhost_is_resolved_by_the_machine() -> None:
    found = await Name(spec("localhost:9100")).find()
    assert "127.0.0.1:9100" in [one.address for one in found]


async def test_an_outage_of_names_takes_no_replica_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = {"engines": ["10.0.0.1", "10.0.0.2"]}
    resolving(monkeypatch, answers)
    discovery = Discovery([Name(spec("engines:9100"))])
    both = ["10.0.0.1:9100", "10.0.0.2:9100"]
    assert list(await discovery.find()) == both
    del answers["engines"]
    assert list(await discovery.find()) == list(await discovery.find()) == both
    assert caplog.text.count("engines has no address") == 1
    answers["engines"] = ["10.0.0.2"]
    assert list(await discovery.find()) == both[1:]


async def test_a_file_is_followed_and_a_broken_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "replicas.yaml"
    discovery = Discovery([Fixed([spec("fixed:1")]), ReplicaFile(file)])
    assert list(await discovery.find()) == ["fixed:1"]
    assert f"{file} cannot be read" in caplog.text
    file.write_text("replicas: ['a:1', {address: 'b:2', weight: 0.5, pool: short}]")
    found = await discovery.find()
    assert list(found) == ["fixed:1", "a:1", "b:2"]
    assert (found["b:2"].weight, found["b:2"].pool) == (0.5, Lane.SHORT)
    file.write_text("replicas: ['a:1', {address: 'b:2', weight: -1}]")
    assert await discovery.find() == found
    assert "replicas[1].weight must be" in caplog.text
    file.write_text("replicas: []")
    assert list(await discovery.find()) == ["fixed:1"]


async def test_of_two_sources_the_first_names_the_weight() -> None:
    discovery = Discovery([Fixed([spec("a:1", weight=3.0)]), Fixed([spec("a:1", weight=1.0)])])
    found = await discovery.find()
    assert [one.weight for one in found.values()] == [3.0]


class Failing:
    async def find(self) -> Sequence[ReplicaSpec]:
        raise SourceFault("down")


async def test_before_a_source_told_anything_it_names_none() -> None:
    assert await Discovery([Failing()]).find() == {}
