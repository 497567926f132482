"""Replicas, tenants and explanations as messages."""

from __future__ import annotations

from tokenway.engine.v1 import engine_pb2
from tokenway.router.v1 import router_pb2 as pb

from services.router.balancing.explanation import Explanation
from services.router.demand import Lane
from services.router.fleet.replica import Replica
from services.router.relay.tenant_use import TenantUse
from services.router.status import Role, Status
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

ROLE: dict[Role, engine_pb2.Role.ValueType] = {
    Role.PREFILL: engine_pb2.ROLE_PREFILL,
    Role.DECODE: engine_pb2.ROLE_DECODE,
    Role.BOTH: engine_pb2.ROLE_BOTH,
}


def role_from(told: engine_pb2.Role.ValueType) -> Role:
    """The role that a replica tells; one that is not known here is both."""
    return next((role for role, value in ROLE.items() if value == told), Role.BOTH)


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
        role=ROLE[replica.role],
    )
    if replica.load is not None:
        message.load.CopyFrom(load_of(replica.load))
        message.load_age_ms = max(0, round(1000 * (now - replica.health.heard_at)))
    return message


def tenant_of(use: TenantUse) -> pb.Tenant:
    return pb.Tenant(
        name=use.tenant,
        running=use.running,
        waiting=use.waiting,
        outstanding_tokens=use.tokens,
    )


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
                role=ROLE[option.candidate.role],
                peer=option.candidate.offer.peer or "",
                prefill=option.candidate.offer.prefill or "",
            )
            for option in told.options
        ],
    )


def _pool(lanes: frozenset[Lane]) -> str:
    """Empty for all lengths of prompts."""
    return "" if len(lanes) == len(Lane) else ",".join(sorted(lanes))
