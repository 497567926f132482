"""The load of a fleet and of what waits before it."""

from __future__ import annotations

from services.router.total_load import QueueLoad, total_load
from services.shared.stream.load import DeviceMemory, Load, ReplicaState

READY = ReplicaState.READY


def test_counts_blocks_and_memory_are_summed() -> None:
    one = Load(
        state=READY,
        running=2,
        waiting=1,
        pending_prompt_tokens=10,
        outstanding_tokens=30,
        free_blocks=5,
        cached_blocks=6,
        total_blocks=20,
        step_us=7,
        slots=8,
        device_memory=DeviceMemory(total_bytes=100, used_bytes=60, free_bytes=40),
        device_utilization=40,
    )
    other = Load(state=READY, running=1, outstanding_tokens=3, total_blocks=20, step_us=9, slots=4)
    assert total_load(READY, [one, other]) == Load(
        state=READY,
        running=3,
        waiting=1,
        pending_prompt_tokens=10,
        outstanding_tokens=33,
        free_blocks=5,
        cached_blocks=6,
        total_blocks=40,
        step_us=9,
        slots=12,
        device_memory=DeviceMemory(total_bytes=100, used_bytes=60, free_bytes=40),
        device_utilization=40,
    )


def test_what_waits_before_the_fleet_is_its_load_too() -> None:
    queue = QueueLoad(waiting=3, tokens=100, expected_wait_ms=1500, refusing=True)
    load = total_load(READY, [Load(state=READY, waiting=1, outstanding_tokens=5)], queue)
    assert (load.waiting, load.outstanding_tokens) == (4, 105)
    assert (load.expected_wait_ms, load.refusing) == (1500, True)


def test_a_fleet_makes_progress_as_long_as_one_of_its_replicas_does_or_could() -> None:
    stuck = Load(state=READY, running=1, progress_age_ms=9000)
    slow = Load(state=READY, waiting=1, progress_age_ms=40)
    idle = Load(state=READY)
    assert total_load(READY, [stuck, slow]).progress_age_ms == 40
    assert total_load(READY, [stuck, idle]).progress_age_ms == 0
    assert total_load(READY, [stuck, stuck]).progress_age_ms == 9000
    assert total_load(READY, []).progress_age_ms == 0


def test_slots_are_not_told_while_one_replica_does_not_tell_its_own() -> None:
    assert total_load(READY, [Load(state=READY, slots=8), Load(state=READY)]).slots == 0


def test_the_utilization_is_the_mean_of_what_devices_tell() -> None:
    busy, idle = (Load(state=READY, device_utilization=told) for told in (90, 31))
    assert total_load(READY, [busy, idle, Load(state=READY)]).device_utilization == 60
    assert total_load(READY, [Load(state=READY)]).device_utilization is None
