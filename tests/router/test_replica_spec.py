"""What an operator may write for a replica."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from services.router.demand import Lane
from services.router.replica_spec import ReplicaSpec
from services.shared.config import BadConfig, load


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    replicas: tuple[ReplicaSpec, ...]


def read(folder: Path, text: str) -> tuple[ReplicaSpec, ...]:
    path = folder / "router.yaml"
    path.write_text(text)
    return load(Listed, path, {}, {}).replicas


def test_a_replica_is_an_address_or_a_mapping(tmp_path: Path) -> None:
    listed = "replicas: [a:1, {address: b:2, weight: 0.5, pool: long}]"
    b = ReplicaSpec(address="b:2", weight=0.5, pool=Lane.LONG)
    assert read(tmp_path, listed) == (ReplicaSpec(address="a:1"), b)


def test_a_list_with_commas_serves_in_the_environment() -> None:
    environ = {"TOKENWAY_REPLICAS": "a:1, [::1]:2"}
    assert load(Listed, None, environ, {}).replicas == (
        ReplicaSpec(address="a:1"),
        ReplicaSpec(address="[::1]:2"),
    )


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("host", "replicas[0].address must be host:port with port 1 to 65535, got host"),
        ("host:0", "replicas[0].address must be host:port with port 1 to 65535, got host:0"),
        ("{address: ':1'}", "replicas[0].address must be host:port with port 1 to 65535, got :1"),
        ("{address: a:1, weight: -1}", "replicas[0].weight must be between 0 and 1000.0, got -1"),
        ("{address: a:1, pool: huge}", "replicas[0].pool must be one of short, long, got 'huge'"),
        ("{weight: 1}", "replicas[0].address must be set"),
        ("{address: a:1, wait: 1}", "replicas[0].wait is unknown"),
    ],
)
def test_a_faulty_entry_is_named(tmp_path: Path, entry: str, fault: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read(tmp_path, f"replicas: [{entry}]")
    assert fault in str(caught.value)
