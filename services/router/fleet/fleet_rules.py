"""How the replicas of a fleet are judged, and for what."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.router.balancing.versions import Versions
from services.router.fleet.health import HealthRules
from services.router.fleet.prefill_rules import PrefillRules
from services.router.fleet.room import RoomRules


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetRules:
    """Without `room` there always is.

    Args:
        router: what this router calls itself before others; no two are called alike.
        versions: those that serve beside each other.
        long_prompt_tokens: prompts from this length on use the long lane.
        prefill: prompts from which length on are computed at one replica for another.
    """

    router: str = "router"
    health: HealthRules = field(default_factory=HealthRules)
    room: RoomRules | None = None
    versions: Versions = field(default_factory=Versions)
    long_prompt_tokens: int = 4096
    prefill: PrefillRules = field(default_factory=PrefillRules)
