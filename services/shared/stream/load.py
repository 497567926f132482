"""What a service can take, as it stands at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from services.shared.stream.limits import at_most

MAX_ROUTERS = 64
"""Routers between an entry and its engines, all ways together."""


class ReplicaState(IntEnum):
    """What a replica is able to do."""

    STARTING = 1
    READY = 2
    DRAINING = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceMemory:
    """Memory of the device in bytes, as NVML tells it."""

    total_bytes: int
    used_bytes: int
    free_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Counts of generations, tokens and blocks; microseconds of the last step.

    Args:
        slots: generations that run at a time at most; 0: not told.
        expected_wait_ms: how long a new generation is expected to wait for a place.
        refusing: new generations are refused, since too many wait.
        routers: names of the routers that this sum went through.
        description_revision: counts what the service has told of itself.
        leased_blocks: used by a transfer and by no generation.
        fetches_blocks: blocks can be fetched from other engines.
        device_utilization: percent of the last moment in which the device computed, as NVML tells.
    """

    state: ReplicaState
    running: int = 0
    waiting: int = 0
    pending_prompt_tokens: int = 0
    outstanding_tokens: int = 0
    free_blocks: int = 0
    cached_blocks: int = 0
    total_blocks: int = 0
    step_us: int = 0
    progress_age_ms: int = 0
    device_memory: DeviceMemory | None = None
    slots: int = 0
    expected_wait_ms: int = 0
    refusing: bool = False
    routers: tuple[str, ...] = ()
    description_revision: int = 0
    leased_blocks: int = 0
    fetches_blocks: bool = False
    device_utilization: int | None = None

    def __post_init__(self) -> None:
        at_most("load.routers", self.routers, MAX_ROUTERS)
