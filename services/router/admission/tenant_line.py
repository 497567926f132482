"""What waits of one tenant."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from math import inf

from services.router.admission.fair_share import FairShare
from services.router.admission.ranking import Ranking
from services.router.admission.service_rate import ServiceRate
from services.router.admission.waiting import Waiting
from services.router.clock import Clock
from services.router.demand import Lane


class TenantLine:
    """Short and long prompts share the tenant's turns by tokens.

    Within a lane the earliest deadline goes first, without one last, and then who came first.

    Args:
        clock: for the rates.

    Attributes:
        tokens: expected, by lane.
        rates: how fast they go, by lane.
    """

    def __init__(self, clock: Clock) -> None:
        self._lanes: dict[Lane, Ranking[Waiting]] = {lane: Ranking() for lane in Lane}
        self._share: FairShare[Lane] = FairShare()
        self._arrivals: dict[Waiting, None] = {}
        self.tokens = dict.fromkeys(Lane, 0)
        self.rates = {lane: ServiceRate(clock) for lane in Lane}

    def __len__(self) -> int:
        return len(self._arrivals)

    def lanes(self) -> list[Lane]:
        """The lanes in which something waits."""
        return [lane for lane, waiting in self._lanes.items() if len(waiting)]

    def add(self, waiting: Waiting) -> None:
        lane = waiting.demand.lane
        if not len(self._lanes[lane]):
            self._share.begin(lane)
            self.rates[lane].wait()
        self._lanes[lane].place(waiting, _by(waiting.applicant.deadline))
        self._arrivals[waiting] = None
        self.tokens[lane] += waiting.tokens

    def remove(self, waiting: Waiting) -> None:
        lane = waiting.demand.lane
        del self._arrivals[waiting]
        self._lanes[lane].remove(waiting)
        self.tokens[lane] -= waiting.tokens
        if not len(self._lanes[lane]):
            self._share.end(lane)
            self.rates[lane].rest()

    def first(self, closed: AbstractSet[Lane]) -> Waiting | None:
        """Who goes next through a lane that is not closed."""
        able = [lane for lane in self.lanes() if lane not in closed]
        if not able:
            return None
        return self._lanes[min(able, key=self._share.__getitem__)].first()

    def serve(self, waiting: Waiting, closed: AbstractSet[Lane]) -> None:
        """Charges the lane of one that goes."""
        self.rates[waiting.demand.lane].serve(waiting.tokens)
        start = self._share.serve(waiting.demand.lane, waiting.tokens)
        for lane in Lane:
            if lane in closed:
                self._share.lift(lane, start)

    def newest(self) -> Waiting:
        return next(reversed(self._arrivals))

    def in_lane(self, lane: Lane) -> list[Waiting]:
        return list(self._lanes[lane])

    def tokens_before(self, lane: Lane, deadline: float | None) -> float:
        """Tokens of the lane that go before a newcomer: its place by the lane's mean cost."""
        waiting = self._lanes[lane]
        if not len(waiting):
            return 0.0
        return self.tokens[lane] * waiting.up_to(_by(deadline)) / len(waiting)

    def tokens_within(self, lane: Lane, tokens: float) -> float:
        """Tokens of the lane that go while those are owed: the last goes whole, half of it more."""
        waiting = self._lanes[lane]
        return min(tokens + self.tokens[lane] / len(waiting) / 2, self.tokens[lane])


def _by(deadline: float | None) -> float:
    return inf if deadline is None else deadline
