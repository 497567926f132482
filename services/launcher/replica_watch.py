"""A replica as its router tells of it."""

from __future__ import annotations

import asyncio

import grpc
from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc

POLL_S = 0.05
TIMEOUT_S = 5.0


class ReplicaWatch:
    """Asks for the replica at `address`, again and again."""

    def __init__(self, router: rpc.RouterServiceStub, address: str) -> None:
        self._router = router
        self._address = address

    async def replica(self) -> pb.Replica | None:
        """None while the router does not know it, or does not answer."""
        try:
            listed = await self._router.ListReplicas(pb.ListReplicasRequest(), timeout=TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return None
        return next((one for one in listed.replicas if one.address == self._address), None)

    async def until_ready(self, after_epoch: int, patience_s: float) -> bool:
        """Whether it is ready in time, in a session later than `after_epoch`."""
        try:
            async with asyncio.timeout(patience_s):
                while not _is_ready(await self.replica(), after_epoch):  # noqa: ASYNC110 the router has no event for it
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            return False
        return True


def _is_ready(replica: pb.Replica | None, after_epoch: int) -> bool:
    return (
        replica is not None
        and replica.status == pb.REPLICA_STATUS_READY
        and replica.epoch > after_epoch
    )
