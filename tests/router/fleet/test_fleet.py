"""What the fleet makes of what its replicas tell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from services.router.balancing.versions import Versions, VersionShare
from services.router.demand import Demand, Lane
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.replica import Replica
from services.router.fleet.room import RoomRules
from services.router.status import Identity, Status
from services.router.total_load import total_load
from services.shared.errors import NotFound
from services.shared.stream.load import DeviceMemory, Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

DEMAND = Demand(model="", token_ids=(1, 2), output_tokens=4, lane=Lane.SHORT)
READY = Load(state=ReplicaState.READY)
OTHER = replace(IDENTITY, tokenizer_fingerprint="other")
CANARY = replace(IDENTITY, version="w2")


@dataclass
class Bed:
    """A fleet with a clock, and what it told."""

    fleet: Fleet
    clock: ManualClock
    changes: list[None] = field(default_factory=list)

    def statuses(self) -> dict[str, Status]:
        return {one.name: one.status for one in self.fleet.snapshot(DEMAND).candidates}

    def join(self, name: str, identity: Identity = IDENTITY) -> None:
        self.fleet.tell_load(name, READY)
        self.fleet.tell_identity(name, identity)


def fleet_of(*names: str, rules: FleetRules | None = None) -> Bed:
    clock = ManualClock()
    changes: list[None] = []
    fleet = Fleet(clock, rules, lambda: changes.append(None))
    for name in names:
        fleet.add(Replica(name, ScriptedSource()))
    return Bed(fleet, clock, changes)


def test_a_replica_is_ready_once_it_is_up_described_and_says_so() -> None:
    bed = fleet_of("a")
    assert bed.statuses() == {"a": Status.GONE}
    bed.fleet.tell_load("a", Load(state=ReplicaState.STARTING))
    assert bed.statuses() == {"a": Status.STARTING}
    bed.fleet.tell_identity("a", IDENTITY)
    assert bed.statuses() == {"a": Status.STARTING}
    bed.fleet.tell_load("a", READY)
    assert bed.statuses() == {"a": Status.READY}
    assert len(bed.changes) == 2
    bed.fleet.tell_load("a", replace(READY, running=5))
    assert len(bed.changes) == 2
    bed.fleet.tell_load("a", Load(state=ReplicaState.DRAINING))
    assert bed.statuses() == {"a": Status.DRAINING}
    bed.fleet.tell_load("a", None)
    assert bed.statuses() == {"a": Status.GONE}
    assert len(bed.changes) == 4


def test_each_change_of_state_is_a_line_with_both_states_and_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    bed = fleet_of("a")
    bed.join("a")
    bed.fleet.tell_load("a", None)
    lines = [vars(record)["fields"] for record in caplog.records]
    assert lines == [
        {
            "replica": "a",
            "from": "gone",
            "to": "starting",
            "why": "it has not described itself yet",
        },
        {"replica": "a", "from": "starting", "to": "ready", "why": ""},
        {"replica": "a", "from": "ready", "to": "gone", "why": "it is not connected"},
    ]


def test_a_replica_must_describe_itself_again_after_its_session_went_down() -> None:
    bed = fleet_of("a")
    bed.join("a")
    bed.fleet.tell_load("a", None)
    bed.fleet.tell_identity("a", IDENTITY)
    bed.fleet.tell_load("a", READY)
    assert bed.statuses() == {"a": Status.STARTING}
    assert bed.fleet.identity is None


def test_a_replica_of_another_tokenizer_takes_nothing_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bed = fleet_of("a", "b")
    bed.join("b")
    bed.join("a", OTHER)
    assert bed.statuses() == {"a": Status.MISMATCHED, "b": Status.READY}
    assert "a is of another model: tokenizer_fingerprint is other, not t" in caplog.text
    assert bed.fleet.members() == bed.fleet.ready() == ["b"]
    assert bed.fleet.loads() == [READY]


def test_when_the_last_of_its_model_has_gone_the_fleet_is_what_is_left() -> None:
    bed = fleet_of("a", "b")
    bed.join("a")
    bed.join("b", OTHER)
    bed.fleet.tell_load("a", None)
    assert bed.statuses() == {"a": Status.GONE, "b": Status.READY}
    assert bed.fleet.identity == OTHER


def test_another_version_serves_only_where_it_is_allowed() -> None:
    bed = fleet_of("a", "b")
    bed.join("a")
    bed.join("b", CANARY)
    assert bed.statuses() == {"a": Status.READY, "b": Status.MISMATCHED}
    assert bed.fleet["b"].reason == "version is w2, not w"

    shares = [VersionShare(fingerprint="w"), VersionShare(fingerprint="w2")]
    bed = fleet_of("a", "b", rules=FleetRules(versions=Versions(shares)))
    bed.join("a")
    bed.join("b", CANARY)
    assert bed.statuses() == {"a": Status.READY, "b": Status.READY}


def test_a_version_that_may_not_serve_does_not_lead() -> None:
    rules = FleetRules(versions=Versions([VersionShare(fingerprint="w")]))
    bed = fleet_of("a", "b", rules=rules)
    bed.join("a", replace(IDENTITY, version="old"))
    assert bed.statuses()["a"] is Status.MISMATCHED
    assert bed.fleet["a"].reason == "version old may not serve"
    bed.join("b")
    assert bed.statuses() == {"a": Status.MISMATCHED, "b": Status.READY}


def test_another_layout_of_blocks_is_no_other_model() -> None:
    bed = fleet_of("a", "b")
    bed.join("a")
    bed.join("b", replace(IDENTITY, layout_id="other", block_size=32))
    assert bed.statuses() == {"a": Status.READY, "b": Status.READY}


def test_tokens_of_other_routers_count_and_ours_count_once() -> None:
    bed = fleet_of("a")
    replica = bed.fleet["a"]
    replica.outstanding_tokens = 100
    bed.fleet.tell_load("a", replace(READY, outstanding_tokens=130))
    assert replica.expected_tokens == 130
    replica.outstanding_tokens = 70
    assert replica.expected_tokens == 100
    bed.fleet.tell_load("a", replace(READY, outstanding_tokens=10))
    assert replica.expected_tokens == 70


def test_memory_in_use_is_the_device_s_or_that_of_blocks_whichever_is_nearer_its_end() -> None:
    bed = fleet_of("a")
    assert bed.fleet["a"].memory_used is None
    blocks = replace(READY, free_blocks=2, cached_blocks=3, total_blocks=20)
    bed.fleet.tell_load("a", blocks)
    assert bed.fleet["a"].memory_used == 0.75
    for used, share in ((4, 0.75), (9, 0.9)):
        memory = DeviceMemory(total_bytes=10, used_bytes=used, free_bytes=10 - used)
        bed.fleet.tell_load("a", replace(blocks, device_memory=memory))
        assert bed.fleet["a"].memory_used == share


def test_a_drained_replica_takes_nothing_until_that_is_undone() -> None:
    bed = fleet_of("a", "b")
    bed.join("a")
    bed.fleet.drain("a")
    assert bed.statuses()["a"] is Status.DRAINING
    assert bed.fleet["a"].reason == "drained by an operator"
    bed.fleet.tell_load("a", None)
    bed.join("a")
    assert bed.statuses()["a"] is Status.DRAINING
    bed.fleet.drain("a", undo=True)
    assert bed.statuses()["a"] is Status.READY
    with pytest.raises(NotFound, match="no replica 'c'; there is a, b"):
        bed.fleet.drain("c")


def test_a_weight_is_that_of_the_next_snapshot() -> None:
    bed = fleet_of("a")
    bed.fleet.set_weight("a", 0.25)
    assert bed.fleet.snapshot(DEMAND).candidates[0].weight == 0.25
    assert len(bed.changes) == 1


def test_a_removed_replica_is_forgotten_and_what_it_still_tells_is_ignored() -> None:
    bed = fleet_of("a", "b")
    bed.join("a", OTHER)
    bed.join("b")
    bed.fleet.remove("a")
    bed.join("a")
    bed.fleet.tell_load("a", None)
    assert bed.statuses() == {"b": Status.READY}
    assert bed.fleet.identity == IDENTITY
    with pytest.raises(NotFound):
        bed.fleet.remove("a")


def test_a_replica_is_met_by_lane_room_and_cache() -> None:
    room = RoomRules(slots=1, window=dict.fromkeys(Lane, 100))
    bed = fleet_of(rules=FleetRules(room=room))
    bed.fleet.add(Replica("short", ScriptedSource(), lanes=frozenset({Lane.SHORT}), weight=3))
    bed.fleet.add(Replica("both", ScriptedSource()))
    bed.fleet["both"].running = 2
    short, both = bed.fleet.snapshot(replace(DEMAND, lane=Lane.LONG)).candidates
    assert (short.takes_lane, short.has_room, short.weight) == (False, True, 3)
    assert (both.takes_lane, both.has_room, both.weight) == (True, False, 1)


def test_a_fleet_is_full_while_replicas_take_generations_and_none_has_room() -> None:
    room = RoomRules(slots=1, window=dict.fromkeys(Lane, 9))
    bed = fleet_of("a", "b", rules=FleetRules(room=room))
    for replica in bed.fleet:
        bed.join(replica.name)
        assert not bed.fleet.is_full(DEMAND)
        replica.running = 2
    assert bed.fleet.is_full(DEMAND)
    bed.fleet.tell_load("a", None)
    assert bed.fleet.is_full(DEMAND)
    bed.fleet.tell_load("b", None)
    assert not bed.fleet.is_full(DEMAND), "there is none that could be full"
    assert not fleet_of("a").fleet.is_full(DEMAND)


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
