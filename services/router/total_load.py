"""The load of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.shared.stream.load import DeviceMemory, Load, ReplicaState


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueLoad:
    """What waits before the replicas.

    Args:
        tokens: expected to be computed or to come.
        expected_wait_ms: of a short interactive generation behind all that wait.
        refusing: a new interactive generation would be refused.
    """

    waiting: int = 0
    tokens: int = 0
    expected_wait_ms: int = 0
    refusing: bool = False


def total_load(state: ReplicaState, loads: Sequence[Load], queue: QueueLoad = QueueLoad()) -> Load:
    """Counts and memory are summed; the longest step stands for all, and the latest progress.

    Utilizations are averaged.

    A fleet makes progress while one of its replicas does, or could: those that do not are its own
    affair.
    """
    told = [load.device_utilization for load in loads if load.device_utilization is not None]
    memories = [load.device_memory for load in loads if load.device_memory is not None]
    return Load(
        state=state,
        running=sum(load.running for load in loads),
        waiting=queue.waiting + sum(load.waiting for load in loads),
        pending_prompt_tokens=sum(load.pending_prompt_tokens for load in loads),
        outstanding_tokens=queue.tokens + sum(load.outstanding_tokens for load in loads),
        free_blocks=sum(load.free_blocks for load in loads),
        cached_blocks=sum(load.cached_blocks for load in loads),
        total_blocks=sum(load.total_blocks for load in loads),
        step_us=max((load.step_us for load in loads), default=0),
        progress_age_ms=min((load.progress_age_ms for load in loads), default=0),
        device_memory=_total_memory(memories) if memories else None,
        device_utilization=round(sum(told) / len(told)) if told else None,
        slots=_total_slots(loads),
        expected_wait_ms=queue.expected_wait_ms,
        refusing=queue.refusing,
        leased_blocks=sum(load.leased_blocks for load in loads),
    )


def _total_slots(loads: Sequence[Load]) -> int:
    """0, which is not told, where one does not tell."""
    return sum(load.slots for load in loads) if all(load.slots for load in loads) else 0


def _total_memory(memories: Sequence[DeviceMemory]) -> DeviceMemory:
    return DeviceMemory(
        total_bytes=sum(memory.total_bytes for memory in memories),
        used_bytes=sum(memory.used_bytes for memory in memories),
        free_bytes=sum(memory.free_bytes for memory in memories),
    )
