"""RouterService: how a router and the replicas behind it are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc

from services.router.clock import Clock
from services.router.fleet.replica import Replica
from services.router.operations import Operations
from services.router.replica_wire import explanation_of, replica_of, tenant_of
from services.shared.stream.generation_wire import generation_from

if TYPE_CHECKING:
    from typing import Any

    import grpc

    Context = grpc.aio.ServicerContext[Any, Any]

NAME = "tokenway.router.v1.RouterService"
MAX_TENANTS = 100


class RouterServicer(rpc.RouterServiceServicer):
    """Args: clock: the one that tells when loads came."""

    def __init__(self, operations: Operations, clock: Clock) -> None:
        self._operations = operations
        self._clock = clock

    async def ListReplicas(
        self, request: pb.ListReplicasRequest, context: Context
    ) -> pb.ListReplicasResponse:
        relay = self._operations.relay
        return pb.ListReplicasResponse(
            replicas=[self._told(replica) for replica in self._operations.replicas()],
            waiting=self._operations.admission.waiting,
            tenants=[tenant_of(use) for use in relay.tenants()[:MAX_TENANTS]],
            output_tokens=relay.figures.relayed_tokens,
        )

    async def DrainReplica(
        self, request: pb.DrainReplicaRequest, context: Context
    ) -> pb.DrainReplicaResponse:
        replica = self._operations.drain(request.address, undo=request.undo)
        return pb.DrainReplicaResponse(replica=self._told(replica))

    async def SetWeight(
        self, request: pb.SetWeightRequest, context: Context
    ) -> pb.SetWeightResponse:
        replica = self._operations.set_weight(request.address, request.weight)
        return pb.SetWeightResponse(replica=self._told(replica))

    async def Disconnect(
        self, request: pb.DisconnectRequest, context: Context
    ) -> pb.DisconnectResponse:
        self._operations.disconnect(request.address, request.duration_ms)
        return pb.DisconnectResponse()

    async def Explain(self, request: pb.ExplainRequest, context: Context) -> pb.ExplainResponse:
        told = self._operations.explain(generation_from(request.request))
        return explanation_of(told, self._operations.balancer.policy.name)

    def _told(self, replica: Replica) -> pb.Replica:
        known_blocks = self._operations.fleet.index.known_blocks(replica.name)
        return replica_of(replica, self._clock.time(), known_blocks)
