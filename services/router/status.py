"""What a replica is able to do, and who it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """Whether a replica takes generations, and why not."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """Takes generations only where no ready replica can."""
    STUCK = "stuck"
    """Has work and makes no progress, or is silent."""
    DRAINING = "draining"
    GONE = "gone"
    MISMATCHED = "of another model"
    EJECTED = "ejected"
    """Failed too often; takes nothing until it has passed a probe."""
    LOOPED = "a way back to this router"


class Role(StrEnum):
    """What part of a generation a replica computes: a preference, for each can do both."""

    PREFILL = "prefill"
    """Prompts, for others to go on from; whole generations only where no other replica can."""
    DECODE = "decode"
    BOTH = "both"


TAKING = (Status.READY, Status.DEGRADED)
"""States in which a replica takes generations, the better first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state, and the reason for people; empty where there is nothing to say."""

    status: Status
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What a replica serves.

    Replicas stand for each other with equal model and tokenizer; one generation's tokens all come
    from one `version`.

    Args:
        version: fingerprint of configuration and weights.
        layout_id: names the memory layout of its KV blocks.
        block_size: tokens in a KV block; 0 where it tells none.
        shares_blocks: equal prompts of different tenants have equal blocks.
        role: what it is for; what it serves is the same whatever its role.
    """

    model: str
    version: str
    tokenizer_fingerprint: str
    layout_id: str = ""
    block_size: int = 0
    shares_blocks: bool = False
    role: Role = field(default=Role.BOTH, compare=False)

    def unlike(self, other: Identity | None) -> str:
        """How it differs, for people."""
        if other is None:
            return f"version {self.version} may not serve"
        names = ("model", "tokenizer_fingerprint", "version")
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in names)
        return "; ".join(
            f"{name} is {ours}, not {theirs}" for name, ours, theirs in pairs if ours != theirs
        )
