"""What the fleet makes of what its replicas tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.demand import Demand, Lane
from services.router.fleet import Fleet
from services.router.replica import Replica
from services.router.status import Identity, Status
from services.router.total_load import total_load
from services.shared.stream.load import DeviceMemory, Load, ReplicaState
from tests.router.world import IDENTITY
from tests.scripted_source import ScriptedSource

DEMAND = Demand(model="", token_ids=(1, 2), output_tokens=4, lane=Lane.SHORT)
READY = Load(state=ReplicaState.READY)
OTHER = replace(IDENTITY, tokenizer_fingerprint="other")


def fleet_of(*names: str) -> tuple[Fleet, list[None]]:
    changes: list[None] = []
    fleet = Fleet(lambda: changes.append(None))
    for name in names:
        fleet.add(Replica(name, ScriptedSource()))
    return fleet, changes


def statuses(fleet: Fleet) -> dict[str, Status]:
    return {candidate.name: candidate.status for candidate in fleet.snapshot(DEMAND).candidates}


def join(fleet: Fleet, name: str, identity: Identity = IDENTITY) -> None:
    fleet.tell_load(name, READY)
    fleet.tell_identity(name, identity)


def test_a_replica_is_ready_once_it_is_up_described_and_says_so() -> None:
    fleet, changes = fleet_of("a")
    assert statuses(fleet) == {"a": Status.GONE}
    fleet.tell_load("a", Load(state=ReplicaState.STARTING))
    assert statuses(fleet) == {"a": Status.STARTING}
    fleet.tell_identity("a", IDENTITY)
    assert statuses(fleet) == {"a": Status.STARTING}
    fleet.tell_load("a", READY)
    assert statuses(fleet) == {"a": Status.READY}
    assert len(changes) == 3
    fleet.tell_load("a", replace(READY, running=5))
    assert len(changes) == 3
    fleet.tell_load("a", Load(state=ReplicaState.DRAINING))
    assert statuses(fleet) == {"a": Status.DRAINING}
    fleet.tell_load("a", None)
    assert statuses(fleet) == {"a": Status.GONE}
    assert len(changes) == 5


def test_a_replica_must_describe_itself_again_after_its_session_went_down() -> None:
    fleet, _ = fleet_of("a")
    join(fleet, "a")
    fleet.tell_load("a", None)
    fleet.tell_identity("a", IDENTITY)
    fleet.tell_load("a", READY)
    assert statuses(fleet) == {"a": Status.STARTING}
    assert fleet.identity is None


def test_a_replica_of_another_tokenizer_takes_nothing_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleet, _ = fleet_of("a", "b")
    join(fleet, "b")
    join(fleet, "a", OTHER)
    assert statuses(fleet) == {"a": Status.MISMATCHED, "b": Status.READY}
    assert "a takes nothing" in caplog.text
    assert fleet.members() == fleet.ready() == ["b"]
    assert fleet.loads() == [READY]


def test_when_the_last_of_its_model_has_gone_the_fleet_is_what_is_left() -> None:
    fleet, _ = fleet_of("a", "b")
    join(fleet, "a")
    join(fleet, "b", OTHER)
    fleet.tell_load("a", None)
    assert statuses(fleet) == {"a": Status.GONE, "b": Status.READY}
    assert fleet.identity == OTHER


def test_tokens_of_other_routers_count_and_ours_count_once() -> None:
    fleet, _ = fleet_of("a")
    replica = fleet["a"]
    replica.outstanding_tokens = 100
    fleet.tell_load("a", replace(READY, outstanding_tokens=130))
    assert replica.expected_tokens == 130
    replica.outstanding_tokens = 70
    assert replica.expected_tokens == 100
    fleet.tell_load("a", replace(READY, outstanding_tokens=10))
    assert replica.expected_tokens == 70


def test_the_load_of_a_fleet_is_a_sum() -> None:
    memory = DeviceMemory(total_bytes=10, used_bytes=4, free_bytes=6)
    one = Load(state=ReplicaState.READY, running=1, total_blocks=8, step_us=5, device_memory=memory)
    two = Load(state=ReplicaState.DRAINING, running=2, total_blocks=8, step_us=9)
    total = total_load(ReplicaState.READY, [one, one, two])
    assert total.running == 4
    assert total.total_blocks == 24
    assert total.step_us == 9
    assert total.device_memory == DeviceMemory(total_bytes=20, used_bytes=8, free_bytes=12)
    assert total_load(ReplicaState.STARTING, []) == Load(state=ReplicaState.STARTING)
