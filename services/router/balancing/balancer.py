"""Which replica takes a generation, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.router.balancing.affinity import Affinity
from services.router.balancing.candidate import Candidate, Snapshot
from services.router.balancing.offer import NO_OFFER, Offer
from services.router.balancing.policies import UNKNOWN, Policy, Round
from services.router.balancing.selection import Selection, lag_of, select
from services.router.balancing.turns import Turns
from services.router.balancing.versions import Versions
from services.router.demand import Demand


class For(StrEnum):
    """What spoke for a replica: the first of these that is true."""

    PREFILL = "prefill"
    """Another one computes the prompt for it."""
    PEER = "peer"
    """Another one has more of the prompt cached."""
    CACHED = "cached"
    LOAD = "load"


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The replica that was chosen, and why; the reason names no replica, for callers read it.

    Args:
        cached_tokens: of the generation's own that are known to be cached there.
        offer: what more of it comes from another replica.
    """

    replica: str
    reason: str
    cached_tokens: int = 0
    offer: Offer = NO_OFFER

    @property
    def peer(self) -> str | None:
        """A replica that has more of the prompt cached."""
        return self.offer.peer

    @property
    def prefill(self) -> str | None:
        """A replica that is to compute the prompt."""
        return self.offer.prefill

    @property
    def spoke_for(self) -> For:
        if self.offer.source is not None:
            return For.PREFILL if self.offer.is_prefill else For.PEER
        return For.CACHED if self.cached_tokens else For.LOAD


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Replicas that can take a generation, compared.

    Args:
        among: all that were compared.
        price: of a turn more than one's share, in tokens.
        costs: what was compared, in tokens, shares included.
        leads: how far each is before the one that had least of its share, in turns of the lightest.
        note: how many they are, and what is special about them.
    """

    among: Round
    price: float
    costs: Sequence[float]
    leads: Sequence[float]
    note: str

    def order(self) -> list[int]:
        """The best first, by their places in `among`."""
        return sorted(range(len(self.costs)), key=self._rank)

    def best(self) -> int:
        """The place of the best one."""
        least = min(self.costs)
        equal = [place for place, cost in enumerate(self.costs) if cost == least]
        return min(equal, key=self._rank)

    def _rank(self, place: int) -> tuple[float, float, float, str]:
        one = self.among.able[place]
        return self.costs[place], self.leads[place], one.assigned / one.weight, one.name


class Balancer:
    """Chooses replicas by a policy and keeps count of their turns.

    Args:
        policy: compares the replicas that can take a generation.
        versions: share new generations before replicas are compared.

    Attributes:
        decisions: since the start, by what spoke for the replica.
    """

    def __init__(self, policy: Policy | None = None, versions: Versions | None = None) -> None:
        self.policy: Policy = policy or Affinity()
        self.versions = versions or Versions()
        self.decisions = dict.fromkeys(For, 0)
        self._turns = Turns()
        self._version_turns = Turns()

    def place(self, demand: Demand, fleet: Snapshot) -> Decision | None:
        """The best replica, for a generation that goes there now: the turn is counted.

        Returns None while all that could take it are full.

        Raises:
            NotFound: the fleet serves another model.
            Unavailable: no replica can take it.
        """
        self._turns.know([one.name for one in fleet.candidates])
        self._version_turns.know(self.versions.names)
        selection = self.select(demand, fleet)
        if not selection.able:
            return None
        choice = self.compare(demand, selection)
        place = choice.best()
        self._take(selection.able[place], selection)
        decision = self.decision(choice, place)
        self.decisions[decision.spoke_for] += 1
        return decision

    def select(self, demand: Demand, fleet: Snapshot) -> Selection:
        """Those that `place` would compare; it raises as that does and changes nothing."""
        return select(demand, fleet, self.versions, self._version_turns)

    def compare(self, demand: Demand, selection: Selection) -> Choice:
        """Those of a selection, by the policy and their turns; it changes nothing."""
        able = selection.able
        among = Round(demand=demand, able=able, number=self._turns.count)
        tokens = self.policy.costs(among)
        leads = self._leads(able)
        price = _price(among, tokens)
        costs = [cost + price * lead for cost, lead in zip(tokens, leads, strict=True)]
        return Choice(among=among, price=price, costs=costs, leads=leads, note=selection.note)

    def decision(self, choice: Choice, place: int) -> Decision:
        """That the generation goes to the one at `place`."""
        best = choice.among.able[place]
        return Decision(
            replica=best.name,
            reason=f"{self.reason(choice, place)}; {choice.note}",
            cached_tokens=best.cached_tokens,
            offer=best.offer,
        )

    def reason(self, choice: Choice, place: int) -> str:
        """How the cost of the one at `place` comes about."""
        told = self.policy.reason(choice.among, place)
        offered = choice.among.able[place].offer.told()
        told = f"{told}, {offered}" if offered else told
        share = choice.price * choice.leads[place]
        return f"{told}, {share:.0f} for its share" if share >= 1 else told

    def _leads(self, able: Sequence[Candidate]) -> list[float]:
        """How far each is before the one that had least of its share, in turns of the lightest."""
        shares = [self.policy.share(one) for one in able]
        lag = lag_of(shares)
        starts = self._turns.starts((one.name for one in able), lag)
        first, least = min(starts), min(shares)
        return [(start - first) * least for start in starts]

    def _take(self, best: Candidate, selection: Selection) -> None:
        lag = lag_of([self.policy.share(one) for one in selection.able])
        self._turns.take(best.name, self.policy.share(best), lag)
        version = selection.version
        if version is not None:
            self._version_turns.take(version.fingerprint, version.weight, selection.version_lag)


def _price(among: Round, tokens: Sequence[float]) -> float:
    """What a turn more than one's share costs, in tokens.

    Where weights differ it is high enough that shares are met over time, and those generations go
    elsewhere first that lose least by it. Where all weigh the same, load alone decides.
    """
    known = [cost for cost in tokens if cost < UNKNOWN]
    if len({one.weight for one in among.able}) == 1 or not known:
        return 0.0
    return among.demand.prompt_tokens + sum(known) / len(known)
