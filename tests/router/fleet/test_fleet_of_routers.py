"""What a fleet makes of replicas that are routers, and what it is to the router before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.balancing.versions import Versions, VersionShare
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.replica import Replica
from services.router.status import Identity, Status
from services.shared.errors import InvalidRequest, Unavailable
from services.shared.stream.generation import RoutingHints
from services.shared.stream.load import MAX_ROUTERS, Load, ReplicaState
from services.shared.stream.source import Submission
from tests.recorder import Recorder, submission
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.router.world import World
from tests.scripted_source import ScriptedSource

READY = Load(state=ReplicaState.READY)
NEW = replace(IDENTITY, version="new")


def fleet_of(*names: str, rules: FleetRules | None = None) -> Fleet:
    fleet = Fleet(ManualClock(), rules)
    for name in names:
        fleet.add(Replica(name, ScriptedSource()))
    return fleet


def join(fleet: Fleet, name: str, identity: Identity = IDENTITY) -> None:
    fleet.tell_load(name, READY)
    fleet.tell_identity(name, identity)


def status(fleet: Fleet) -> Status:
    return fleet["a"].status


def behind(*routers: str) -> Load:
    return Load(state=ReplicaState.READY, routers=routers)


def test_the_routers_on_any_way_to_an_engine_are_told() -> None:
    fleet = fleet_of("engine", "a", "b", rules=FleetRules(router="me"))
    assert fleet.routers() == ("me",)
    join(fleet, "engine")
    fleet.tell_load("a", behind("a", "c"))
    fleet.tell_load("b", behind("b", "c"))
    assert fleet.routers() == ("me", "a", "c", "b")
    fleet.tell_load("a", None)
    assert fleet.routers() == ("me", "b", "c")


def test_a_replica_that_leads_back_is_nobodys_replica_while_its_session_lasts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleet = fleet_of("engine", "a", rules=FleetRules(router="me"))
    join(fleet, "engine")
    fleet.tell_load("a", behind("a"))
    fleet.tell_identity("a", IDENTITY)
    assert status(fleet) is Status.READY
    fleet.tell_load("a", behind("a", "me"))
    assert status(fleet) is Status.LOOPED
    assert caplog.messages == ["a is a way back to this router"]
    fleet.tell_load("a", behind("a"))
    fleet.tell_identity("a", IDENTITY)
    assert status(fleet) is Status.LOOPED
    assert (fleet.ready(), fleet.members()) == (["engine"], ["engine"])
    assert len(fleet.loads()) == 1
    assert fleet.routers() == ("me",)
    fleet.tell_load("a", None)
    fleet.tell_load("a", behind("a"))
    fleet.tell_identity("a", IDENTITY)
    assert status(fleet) is Status.READY


def test_a_fleet_stands_for_nothing_that_only_leads_back() -> None:
    fleet = fleet_of("engine", "a", rules=FleetRules(router="me"))
    join(fleet, "engine")
    fleet.tell_load("a", behind("a"))
    fleet.tell_identity("a", IDENTITY)
    fleet.tell_load("engine", None)
    assert fleet.identity == IDENTITY
    fleet.tell_load("a", behind("a", "me"))
    assert fleet.identity is None


def test_more_routers_than_there_can_be_are_no_load() -> None:
    names = [str(number) for number in range(MAX_ROUTERS + 1)]
    with pytest.raises(InvalidRequest, match=r"load\.routers must have at most 64 entries, got 65"):
        behind(*names)
    fleet = fleet_of("a", rules=FleetRules(router="me"))
    fleet.tell_load("a", behind(*names[:-1]))
    assert len(fleet.routers()) == MAX_ROUTERS


def test_another_identity_is_another_revision_and_none_is_none() -> None:
    fleet = fleet_of("a", "b")
    assert fleet.revision == 0
    join(fleet, "a")
    assert fleet.revision == 1
    fleet.tell_load("a", None)
    join(fleet, "a")
    assert fleet.revision == 1
    fleet.tell_load("a", None)
    join(fleet, "a", NEW)
    assert fleet.revision == 2


def test_a_replica_of_another_revision_takes_nothing_until_it_is_described_again() -> None:
    fleet = fleet_of("a")
    join(fleet, "a")
    changed = replace(READY, description_revision=1)
    fleet.tell_load("a", changed)
    assert status(fleet) is Status.STARTING
    fleet.tell_identity("a", NEW)
    fleet.tell_load("a", changed)
    assert status(fleet) is Status.READY
    assert fleet.identity == NEW


def test_of_versions_beside_each_other_a_fleet_stands_for_one_that_takes_new_generations() -> None:
    shares = (VersionShare(fingerprint="w", weight=0), VersionShare(fingerprint="new"))
    fleet = fleet_of("a", "b", rules=FleetRules(versions=Versions(shares)))
    join(fleet, "a")
    assert fleet.identity == IDENTITY
    join(fleet, "b", NEW)
    assert fleet.identity == NEW


def test_a_generation_for_a_version_goes_to_no_other() -> None:
    shares = (VersionShare(fingerprint="w"), VersionShare(fingerprint="new"))
    world = World("a", "b", versions=Versions(shares))
    world.come_again("b", "new")
    for number in range(4):
        world.relay.submit(for_version("new", f"x{number}"))
    assert not world.sources["a"].submitted
    assert len(world.sources["b"].submitted) == 4
    with pytest.raises(Unavailable, match="of 2: 2 of another version"):
        world.relay.submit(for_version("old", "y"))


def for_version(version: str, name: str) -> Submission:
    asked = submission(name, Recorder())
    routing = RoutingHints(model_version=version)
    return replace(asked, generation=replace(asked.generation, routing=routing))
