"""Replicas and explanations as messages."""

from __future__ import annotations

from tokenway.router.v1 import router_pb2 as pb

from services.router.balancing.explanation import Explanation
from services.router.demand import Lane
from services.router.fleet.replica import Replica
from services.router.status import Status
from services.shared.stream.load_wire import load_of

STATUS: dict[Status, pb.ReplicaStatus.ValueType] = {
    Status.STARTING: pb.REPLICA_STATUS_STARTING,
    Status.READY: pb.REPLICA_STATUS_READY,
    Status.DEGRADED: pb.REPLICA_STATUS_DEGRADED,
    Status.STUCK: pb.REPLICA_STATUS_STUCK,
    Status.DRAINING: pb.REPLICA_STATUS_DRAINING,
    Status.GONE: pb.REPLICA_STATUS_GONE,
    Status.MISMATCHED: pb.REPLICA_STATUS_MISMATCHED,
    Status.EJECTED: pb.REPLICA_STATUS_EJECTED,
    Status.LOOPED: pb.REPLICA_STATUS_LOOPED,
}


def replica_of(replica: Replica, now: float, known_blocks: int) -> pb.Replica:
    """Args: now: on the clock that tells when loads came."""
    message = pb.Replica(
        address=replica.name,
        status=STATUS[replica.status],
        reason=replica.reason,
        weight=replica.weight,
        pool=_pool(replica.lanes),
        version=replica.identity.version if replica.identity else "",
        epoch=replica.epoch,
        running=replica.running,
        outstanding_tokens=replica.outstanding_tokens,
        assigned=replica.assigned,
        known_blocks=known_blocks,
    )
    if replica.load is not None:
        message.load.CopyFrom(load_of(replica.load))
        message.load_age_ms = max(0, round(1000 * (now - replica.health.heard_at)))
    return message


def explanation_of(told: Explanation, policy: str) -> pb.ExplainResponse:
    return pb.ExplainResponse(
        address=told.replica or "",
        reason=told.reason,
        policy=policy,
        options=[
            pb.Option(
                address=option.candidate.name,
                status=STATUS[option.candidate.status],
                has_room=option.candidate.has_room,
                cached_tokens=option.candidate.cached_tokens,
                cost=option.cost,
                reason=option.reason,
            )
            for option in told.options
        ],
    )


def _pool(lanes: frozenset[Lane]) -> str:
    """Empty for all lengths of prompts."""
    return "" if len(lanes) == len(Lane) else ",".join(sorted(lanes))
