"""What a generation uses on its way through the router."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.admission.admission import Admission
from services.router.clock import Clock
from services.router.fleet.fleet import Fleet
from services.router.relay.figures import RelayFigures
from services.router.relay.outcome import Journal
from services.router.relay.retry_budget import RetryBudget


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """Parts of the router that all generations share."""

    fleet: Fleet
    admission: Admission
    clock: Clock
    journal: Journal
    budget: RetryBudget
    figures: RelayFigures
