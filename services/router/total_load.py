"""The load of a fleet."""

from __future__ import annotations

from collections.abc import Sequence

from services.shared.stream.load import DeviceMemory, Load, ReplicaState


def total_load(state: ReplicaState, loads: Sequence[Load]) -> Load:
    """Counts and memory are summed; the longest step and the oldest progress stand for all."""
    memories = [load.device_memory for load in loads if load.device_memory is not None]
    return Load(
        state=state,
        running=sum(load.running for load in loads),
        waiting=sum(load.waiting for load in loads),
        pending_prompt_tokens=sum(load.pending_prompt_tokens for load in loads),
        outstanding_tokens=sum(load.outstanding_tokens for load in loads),
        free_blocks=sum(load.free_blocks for load in loads),
        cached_blocks=sum(load.cached_blocks for load in loads),
        total_blocks=sum(load.total_blocks for load in loads),
        step_us=max((load.step_us for load in loads), default=0),
        progress_age_ms=max((load.progress_age_ms for load in loads), default=0),
        device_memory=_total_memory(memories) if memories else None,
    )


def _total_memory(memories: Sequence[DeviceMemory]) -> DeviceMemory:
    return DeviceMemory(
        total_bytes=sum(memory.total_bytes for memory in memories),
        used_bytes=sum(memory.used_bytes for memory in memories),
        free_bytes=sum(memory.free_bytes for memory in memories),
    )
