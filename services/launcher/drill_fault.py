"""The faults that a drill injects; each ends what it begins."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc

from services.launcher.process_start import process_start
from services.launcher.run_file import Running


class CannotDrill(Exception):
    """There is nothing to drill, or it is in no state for it; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The replica that has the fault.

    Attributes:
        name: for people.
        address: by which the router knows it.
        process: None where it is not known.
    """

    name: str
    address: str
    process: Running | None = None


async def kill(target: Target, _: rpc.RouterServiceStub, __: float) -> None:
    """SIGKILL; whoever keeps the process alive starts it again."""
    _signal(target, signal.SIGKILL)


async def stall(target: Target, _: rpc.RouterServiceStub, seconds: float) -> None:
    """The process stands still for a while."""
    _signal(target, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        _signal(target, signal.SIGCONT)


async def drain(target: Target, router: rpc.RouterServiceStub, seconds: float) -> None:
    """The router takes the replica out for a while."""
    request = pb.DrainReplicaRequest(address=target.address)
    await router.DrainReplica(request)
    try:
        await asyncio.sleep(seconds)
    finally:
        request.undo = True
        await router.DrainReplica(request)


async def partition(target: Target, router: rpc.RouterServiceStub, seconds: float) -> None:
    """The router has no connection to the replica for a while."""
    duration_ms = round(seconds * 1000)
    await router.Disconnect(pb.DisconnectRequest(address=target.address, duration_ms=duration_ms))


Fault = Callable[[Target, rpc.RouterServiceStub, float], Awaitable[None]]

FAULTS: dict[str, Fault] = {"kill": kill, "stall": stall, "drain": drain, "partition": partition}
ENDS_SESSION = frozenset({"kill", "partition"})
"""After these a replica is back with a session of another epoch."""


def _signal(target: Target, number: signal.Signals) -> None:
    """Reaches the process that was started and no other, though its ID may have been given away."""
    process = target.process
    if process is None:
        raise CannotDrill(
            f"no process is known for {target.name}; kill and stall need a stack of `tokenway up`"
        )
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        raise CannotDrill(f"{target.name}, process {process.pid}, is gone") from None
    try:
        if process_start(process.pid) != process.started:
            raise CannotDrill(f"{target.name}, process {process.pid}, is gone")
        signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)
