"""What the fleet makes of the blocks that its replicas tell of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.demand import Demand, Lane
from services.router.fleet.fleet import Fleet
from services.router.fleet.replica import Replica
from services.shared.addresses import next_address, root_address
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.load import Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

WITH_BLOCKS = replace(IDENTITY, layout_id="l", block_size=4)
DEMAND = Demand(model="", token_ids=tuple(range(9)), output_tokens=4, lane=Lane.SHORT)
FIRST = next_address(root_address(WITH_BLOCKS.version, "l", b""), range(4))
STORED = BlockEvents(sequence=1, snapshot=True, stored=[FIRST])


@pytest.fixture
def fleet() -> Fleet:
    """Two replicas, of which `a` has told of the first block of the prompt."""
    fleet = Fleet(ManualClock())
    for name in ("a", "b"):
        fleet.add(Replica(name, ScriptedSource()))
        up(fleet, name)
    fleet.tell_blocks("a", STORED)
    return fleet


def up(fleet: Fleet, name: str) -> None:
    fleet.tell_load(name, Load(state=ReplicaState.READY))
    fleet.tell_identity(name, WITH_BLOCKS)


def cached(fleet: Fleet) -> dict[str, int]:
    return {one.name: one.cached_tokens for one in fleet.snapshot(DEMAND).candidates}


def test_a_candidate_has_what_its_replica_told(fleet: Fleet) -> None:
    assert cached(fleet) == {"a": 4, "b": 0}


def test_with_its_session_a_replicas_blocks_are_forgotten_until_it_tells_again(
    fleet: Fleet,
) -> None:
    fleet.tell_load("a", None)
    up(fleet, "a")
    assert cached(fleet) == {"a": 0, "b": 0}
    fleet.tell_blocks("a", STORED)
    assert cached(fleet) == {"a": 4, "b": 0}


def test_a_replica_that_was_removed_leaves_nothing_and_tells_nothing(fleet: Fleet) -> None:
    fleet.remove("a")
    fleet.tell_blocks("a", STORED)
    assert cached(fleet) == {"b": 0}
    assert fleet.index.known_blocks("a") == 0
