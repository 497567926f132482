"""What waits of one class, in the order in which it goes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from services.router.admission.fair_share import FairShare
from services.router.admission.ranking import Ranking
from services.router.admission.tenant_line import TenantLine
from services.router.admission.tenant_weights import TenantWeights
from services.router.admission.waiting import Waiting
from services.router.clock import Clock
from services.router.demand import Lane

WATCHED_S = 5.0
"""How long a tenant must have waited before its own rate tells more than that of all."""

SAMPLE = 16
"""Tenants that are looked at to tell how much goes before a newcomer; the others are alike."""


class WaitingLine:
    """Tenants share by tokens, as their weights say; what a lane cannot take holds up no other.

    Args:
        clock: for the rates.
        weights: tenants' shares against the others'.
    """

    def __init__(self, clock: Clock, weights: TenantWeights) -> None:
        self._clock = clock
        self.weight = weights.of
        self._share: FairShare[str] = FairShare(self.weight)
        self._tenants: dict[str, TenantLine] = {}
        self._by_account: dict[Lane, Ranking[str]] = {lane: Ranking() for lane in Lane}
        self._by_places: Ranking[str] = Ranking()
        self._floors = dict.fromkeys(Lane, 0.0)
        self._waiting = 0
        self.tokens = dict.fromkeys(Lane, 0)

    def __len__(self) -> int:
        return self._waiting

    def waits_in(self, lane: Lane) -> bool:
        return len(self._by_account[lane]) > 0

    def in_lane(self, lane: Lane) -> list[Waiting]:
        """All that wait in a lane."""
        tenants = self._by_account[lane]
        return [one for tenant in tenants for one in self._tenants[tenant].in_lane(lane)]

    def add(self, waiting: Waiting) -> None:
        tenant, lane = waiting.demand.tenant, waiting.demand.lane
        if tenant not in self._tenants:
            self._tenants[tenant] = TenantLine(self._clock)
            self._share.begin(tenant)
        line = self._tenants[tenant]
        line.add(waiting)
        self._by_account[lane].place(tenant, self._share[tenant])
        self._by_places.place(tenant, len(line) / self.weight(tenant))
        self._waiting += 1
        self.tokens[lane] += waiting.tokens

    def remove(self, waiting: Waiting) -> None:
        tenant, lane = waiting.demand.tenant, waiting.demand.lane
        line = self._tenants[tenant]
        line.remove(waiting)
        self._waiting -= 1
        self.tokens[lane] -= waiting.tokens
        self._by_places.place(tenant, len(line) / self.weight(tenant))
        if lane not in line.lanes():
            self._by_account[lane].remove(tenant)
        if not len(line):
            del self._tenants[tenant]
            self._by_places.remove(tenant)
            self._share.end(tenant)

    def first(self, closed: AbstractSet[Lane] = frozenset()) -> Waiting | None:
        """Who goes next through a lane that is not closed."""
        tenants = [
            (max(self._share[tenant], self._floors[lane]), tenant)
            for lane, by_account in self._by_account.items()
            if lane not in closed and (tenant := by_account.first()) is not None
        ]
        if not tenants:
            return None
        return self._tenants[min(tenants, key=lambda pair: pair[0])[1]].first(closed)

    def take(self, waiting: Waiting, closed: AbstractSet[Lane]) -> None:
        """The first goes; what waits in a closed lane gets no credit for that."""
        tenant = waiting.demand.tenant
        start = self._share.serve(tenant, waiting.tokens, self._floors[waiting.demand.lane])
        for lane in Lane:
            if lane in closed:
                self._floors[lane] = max(self._floors[lane], start)
        self._tenants[tenant].serve(waiting, closed)
        self._rank(tenant)
        self.remove(waiting)

    def charge(self, tenant: str, tokens: float) -> None:
        """Adds tokens that were needed beyond those charged, or takes away such as were not."""
        self._share.charge(tenant, tokens)
        if tenant in self._tenants:
            self._rank(tenant)

    def displaceable_by(self, tenant: str) -> Waiting | None:
        """The newest of the tenant with the most places by weight.

        None if that would leave it fewer than `tenant` then has.
        """
        most = self._by_places.last()
        if most is None or most == tenant:
            return None
        own = len(self._tenants[tenant]) if tenant in self._tenants else 0
        left = len(self._tenants[most]) - 1
        fair = left / self.weight(most) >= (own + 1) / self.weight(tenant)
        return self._tenants[most].newest() if fair else None

    def newest(self) -> Waiting | None:
        """The newest of the tenant with the most places."""
        most = self._by_places.last()
        return None if most is None else self._tenants[most].newest()

    def tenants(self) -> AbstractSet[str]:
        return self._tenants.keys()

    def own_wait_s(self, newcomer: Waiting) -> float | None:
        """Seconds until a newcomer goes, as its tenant's others did; None if too few were seen."""
        demand = newcomer.demand
        mine, lane = self._tenants.get(demand.tenant), demand.lane
        if mine is None or (rate := mine.rates[lane].per_s(WATCHED_S)) is None:
            return None
        before = mine.tokens_before(lane, newcomer.applicant.deadline)
        return (before + newcomer.tokens / 2) / rate

    def tokens_before(self, newcomer: Waiting) -> float:
        """Tokens that go through its lane before a newcomer, if nobody else comes.

        Until its tenant's turn, each other tenant gets as much as its account allows.
        """
        demand = newcomer.demand
        mine, lane = self._tenants.get(demand.tenant), demand.lane
        own = mine.tokens_before(lane, newcomer.applicant.deadline) if mine is not None else 0.0
        turn = self._share[demand.tenant] + own / self.weight(demand.tenant)
        return own + self._tokens_until(turn, lane, demand.tenant)

    def _tokens_until(self, turn: float, lane: Lane, mine: str) -> float:
        """What other tenants get through a lane while their accounts are below `turn`."""
        by_account = self._by_account[lane]
        count = by_account.up_to(turn)
        sample = by_account.sample(count, SAMPLE)
        owed = [(one, (turn - by_account[one]) * self.weight(one)) for one in sample if one != mine]
        tokens = sum(self._tenants[one].tokens_within(lane, share) for one, share in owed)
        return tokens * count / len(sample) if sample else 0.0

    def _rank(self, tenant: str) -> None:
        for lane in self._tenants[tenant].lanes():
            self._by_account[lane].place(tenant, self._share[tenant])
