"""The fleet as one generation meets it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.router.balancing.offer import NO_OFFER, Offer
from services.router.status import Role, Status


@dataclass(kw_only=True, slots=True)  # not frozen: for each decision there is one per replica
class Candidate:
    """A replica at the moment of the choice, for one generation; nobody changes it.

    Args:
        version: model fingerprint; None while it is not known.
        weight: its share of new generations against the others'; 0 takes nothing new.
        has_room: whether the generation would not have to wait there.
        takes_lane: whether it takes prompts of this length at all.
        expected_tokens: tokens to compute and to come before a new generation; None when neither
            its load nor our own count can tell.
        pending_tokens: of these, prompt tokens.
        cached_tokens: of the generation's own, as far as is known.
        offer: what of it could be fetched from another replica.
        role: what it is for.
        tells_blocks: whether it tells which blocks it has cached.
        memory_used: share of its memory in use, 0 to 1; None when it is not told.
        assigned: generations that it was given since the router started.
    """

    name: str
    epoch: int = 1
    status: Status
    version: str | None = None
    weight: float = 1.0
    has_room: bool = True
    takes_lane: bool = True
    expected_tokens: int | None = 0
    pending_tokens: int = 0
    cached_tokens: int = 0
    offer: Offer = NO_OFFER
    role: Role = Role.BOTH
    tells_blocks: bool = False
    memory_used: float | None = None
    assigned: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The fleet at the moment of the choice; `model` is None while no replica is described."""

    model: str | None
    candidates: Sequence[Candidate]
