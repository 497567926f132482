"""Loads to messages and back."""

from __future__ import annotations

from dataclasses import fields

from tokenway.types.v1 import types_pb2 as types

from services.shared.stream.load import DeviceMemory, Load, ReplicaState

_OTHERS = {"state", "device_memory", "device_utilization", "routers"}
_COUNTS = [field.name for field in fields(Load) if field.name not in _OTHERS]
_STATES: dict[int, ReplicaState] = {state.value: state for state in ReplicaState}


def load_of(load: Load) -> types.Load:
    memory = load.device_memory
    return types.Load(
        state=types.ReplicaState.ValueType(load.state),
        device_memory=None
        if memory is None
        else types.DeviceMemory(
            total_bytes=memory.total_bytes,
            used_bytes=memory.used_bytes,
            free_bytes=memory.free_bytes,
        ),
        device_utilization=load.device_utilization,
        routers=load.routers,
        **{name: getattr(load, name) for name in _COUNTS},
    )


def load_from(message: types.Load) -> Load:
    """Reads a load; a state that is not known here counts as starting: it takes nothing.

    Raises:
        InvalidRequest: more routers than there can be.
    """
    memory = message.device_memory
    return Load(
        state=_STATES.get(message.state, ReplicaState.STARTING),
        device_memory=DeviceMemory(
            total_bytes=memory.total_bytes,
            used_bytes=memory.used_bytes,
            free_bytes=memory.free_bytes,
        )
        if message.HasField("device_memory")
        else None,
        device_utilization=message.device_utilization
        if message.HasField("device_utilization")
        else None,
        routers=tuple(message.routers),
        **{name: getattr(message, name) for name in _COUNTS},
    )
