"""What the replicas of a fleet have of a prompt, or could compute of it, for each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from services.router.balancing.balancer import Decision
from services.router.balancing.offer import NO_OFFER, Offer
from services.router.demand import Demand, Lane
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.prefill_rules import PrefillRules
from services.router.fleet.replica import Replica
from services.router.fleet.room import RoomRules
from services.router.status import Role
from services.shared.addresses import next_address, root_address
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.load import Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

SIZE = 4
WITH_BLOCKS = replace(IDENTITY, layout_id="l", block_size=SIZE)
PROMPT = tuple(range(41))
"""Ten blocks and the token that is always computed."""

READY = Load(state=ReplicaState.READY, fetches_blocks=True)
RULES = PrefillRules(threshold_tokens=16, peer_tokens=8)


@dataclass
class Replicas:
    """A fleet whose replicas tell what a test says."""

    rules: PrefillRules = RULES
    room: RoomRules | None = None
    fleet: Fleet = field(init=False)

    def __post_init__(self) -> None:
        self.fleet = Fleet(ManualClock(), FleetRules(prefill=self.rules, room=self.room))

    def up(
        self, name: str, role: Role = Role.DECODE, load: Load = READY, tokens: int = 0, **who: Any
    ) -> Replica:
        """A replica that has so many tokens of the prompt cached."""
        replica = Replica(name, ScriptedSource())
        self.fleet.add(replica)
        self.fleet.tell_load(name, load)
        identity = replace(WITH_BLOCKS, role=role, **who)
        self.fleet.tell_identity(name, identity)
        addresses = [root_address(identity.version, identity.layout_id, b"")]
        for start in range(0, tokens, SIZE):
            addresses.append(next_address(addresses[-1], PROMPT[start : start + SIZE]))
        events = BlockEvents(sequence=1, snapshot=True, stored=addresses[1:])
        self.fleet.tell_blocks(name, events)
        return replica

    def offered(self, name: str, **wants: Any) -> Offer:
        demand = Demand(
            model="", output_tokens=4, **{"token_ids": PROMPT, "lane": Lane.SHORT, **wants}
        )
        found = {one.name: one for one in self.fleet.snapshot(demand).candidates}
        return found[name].offer


def test_a_long_prompt_is_computed_by_a_prefill_replica() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("p", Role.PREFILL)
    assert fleet.offered("d") == Offer(source="p", tokens=40, is_prefill=True)
    assert fleet.offered("p") == NO_OFFER, "whoever computes for others computes for itself"


def test_a_replica_of_both_roles_has_its_prompts_computed_too() -> None:
    fleet = Replicas()
    fleet.up("b", Role.BOTH)
    assert fleet.offered("b") == NO_OFFER
    fleet.up("p", Role.PREFILL)
    assert fleet.offered("b").prefill == "p"


def test_what_is_cached_at_the_replica_is_computed_nowhere() -> None:
    fleet = Replicas()
    fleet.up("d", tokens=24)
    fleet.up("p", Role.PREFILL)
    assert fleet.offered("d").tokens == 16
    fleet.up("e", tokens=28)
    assert fleet.offered("e") == NO_OFFER, "13 tokens are not worth the way"


def test_what_another_has_is_fetched_from_who_has_most() -> None:
    fleet = Replicas()
    fleet.up("d", tokens=8)
    fleet.up("e", tokens=16)
    fleet.up("f", Role.PREFILL, tokens=40)
    assert fleet.offered("d") == Offer(source="f", tokens=32, cached_tokens=40)
    assert fleet.offered("f") == NO_OFFER


def test_less_than_is_worth_a_way_is_not_fetched() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("e", tokens=4)
    assert fleet.offered("d") == NO_OFFER


def test_a_prefill_replica_fetches_what_a_third_one_has() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("e", tokens=20)
    fleet.up("p", Role.PREFILL, tokens=4)
    offer = Offer(source="p", tokens=40, is_prefill=True, cached_tokens=4, behind="e")
    assert fleet.offered("d") == offer


def test_0_never_goes_the_way() -> None:
    never = Replicas(PrefillRules(threshold_tokens=0, peer_tokens=0))
    never.up("d")
    never.up("e", tokens=20)
    never.up("p", Role.PREFILL)
    assert never.offered("d") == NO_OFFER


def test_who_does_not_fetch_or_lend_is_offered_nothing_and_offers_nothing() -> None:
    off = Load(state=ReplicaState.READY)
    fleet = Replicas()
    fleet.up("d", load=off)
    fleet.up("e")
    fleet.up("f", load=off, tokens=40)
    fleet.up("p", Role.PREFILL, load=off)
    assert fleet.offered("e") == NO_OFFER
    fleet.up("q", Role.PREFILL)
    assert fleet.offered("d") == NO_OFFER
    assert fleet.offered("e").prefill == "q"


def test_blocks_move_between_equal_layouts_only() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("e", tokens=40, layout_id="other")
    fleet.up("p", Role.PREFILL, layout_id="other")
    fleet.up("q", Role.PREFILL, shares_blocks=True)
    assert fleet.offered("d") == NO_OFFER


def test_who_may_not_read_is_offered_nothing_and_who_may_not_write_no_prefill() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("p", Role.PREFILL)
    assert fleet.offered("d", reads_cache=False) == NO_OFFER
    assert fleet.offered("d", writes_cache=False) == NO_OFFER
    fleet.up("e", tokens=40)
    assert fleet.offered("d", writes_cache=False).peer == "e"


def test_a_prefill_replica_that_cannot_begin_is_not_waited_for() -> None:
    fleet = Replicas(room=RoomRules(slots=1, window={Lane.SHORT: 50, Lane.LONG: 50}))
    fleet.up("d")
    replica = fleet.up("p", Role.PREFILL)
    assert fleet.offered("d").prefill == "p"
    replica.pending[Lane.SHORT] = 20
    assert fleet.offered("d") == NO_OFFER
    assert fleet.offered("d", lane=Lane.LONG).prefill == "p", "lanes do not hold up each other"
    replica.pending[Lane.SHORT] = 0
    replica.running = 2
    assert fleet.offered("d") == NO_OFFER


def test_a_prefill_replica_without_weight_or_for_other_prompts_gets_none() -> None:
    fleet = Replicas()
    fleet.up("d")
    replica = fleet.up("p", Role.PREFILL)
    replica.weight = 0
    assert fleet.offered("d") == NO_OFFER
    replica.weight = 1
    replica.lanes = frozenset({Lane.LONG})
    assert fleet.offered("d") == NO_OFFER
    assert fleet.offered("d", avoid=frozenset({("p", 1)}), lane=Lane.LONG) == NO_OFFER


def test_the_prefill_replica_with_the_least_to_do_computes_it() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("p", Role.PREFILL, load=replace(READY, outstanding_tokens=30))
    fleet.up("q", Role.PREFILL, load=replace(READY, outstanding_tokens=20))
    assert fleet.offered("d").prefill == "q"
    fleet.up("r", Role.PREFILL, load=replace(READY, outstanding_tokens=22), tokens=4)
    assert fleet.offered("d").prefill == "r", "four tokens less are to compute"


def test_blocks_of_a_draining_replica_can_still_be_fetched() -> None:
    fleet = Replicas()
    fleet.up("d")
    fleet.up("e", tokens=40)
    fleet.fleet.drain("e")
    assert fleet.offered("d").peer == "e"
    fleet.up("p", Role.PREFILL)
    fleet.fleet.drain("p")
    assert fleet.offered("d", writes_cache=True).peer == "e"
    fleet.fleet.tell_load("e", None)
    assert fleet.offered("d") == NO_OFFER


def test_what_another_computes_takes_no_room_at_the_replica() -> None:
    fleet = Replicas(room=RoomRules(slots=8, window={Lane.SHORT: 50, Lane.LONG: 50}))
    replica = fleet.up("d")
    replica.pending[Lane.SHORT] = 30
    demand = Demand(model="", token_ids=PROMPT, output_tokens=4, lane=Lane.SHORT)
    assert fleet.fleet.is_full(demand)
    fleet.up("p", Role.PREFILL)
    assert not fleet.fleet.is_full(demand)
    rooms = {one.name: one.has_room for one in fleet.fleet.snapshot(demand).candidates}
    assert rooms == {"d": True, "p": True}


def test_an_offer_grows_with_the_tokens_that_came_while_one_waited() -> None:
    fleet = Replicas()
    fleet.up("d", tokens=8)
    fleet.up("p", Role.PREFILL)
    decided = Decision(replica="d", reason="least", offer=fleet.offered("d", token_ids=PROMPT[:34]))
    assert decided.offer.tokens == 24
    grown = Demand(model="", token_ids=PROMPT, output_tokens=4, lane=Lane.SHORT)
    renewed = fleet.fleet.renewed(decided, grown)
    assert (renewed.cached_tokens, renewed.offer.tokens) == (8, 32)
    assert renewed.offer == fleet.offered("d")
