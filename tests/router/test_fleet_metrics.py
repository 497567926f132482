"""What a router tells of its replicas."""

from __future__ import annotations

from services.router.fleet_metrics import FleetMetrics
from services.shared.grpc_traffic import Traffic
from tests.router.world import World


def told(world: World) -> dict[str, float]:
    metrics = FleetMetrics(world.fleet, world.clock, Traffic())
    return {
        sample.name.removeprefix("tokenway_router_") + "".join(sample.labels.values()): sample.value
        for family in metrics.collect()
        for sample in family.samples
    }


def test_replicas_are_counted_by_state_and_the_oldest_load_is_told() -> None:
    world = World("a", "b", "c")
    world.fleet.drain("b")
    world.clock.pass_time(1)
    world.report("a")
    figures = told(world)
    assert (figures["replicasready"], figures["replicasdraining"]) == (2, 1)
    assert figures["load_age_seconds"] == 1
    for name in "bc":
        world.die(name)
    figures = told(world)
    assert (figures["replicasready"], figures["replicasgone"]) == (1, 2)
    assert figures["load_age_seconds"] == 0
