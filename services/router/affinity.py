"""The default way to compare replicas: what a generation has to wait for, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.router.candidate import Candidate
from services.router.demand import Demand
from services.router.policies import UNKNOWN, PolicyName, Round, mean_weight
from services.router.rendezvous import draw, key_of

DECODE = 0.1
"""What a token that is still to come counts of one that is to be computed for a prompt: tokens to
come are computed many in a step."""

HOME = 0.5
"""Share of a prompt that is taken to be cached at its session's home, if that tells no blocks."""

MEMORY = 0.02
"""What each of a generation's tokens costs, in tokens, where half of the memory is in use: as much
as to compute it where nine tenths are."""

LEAST_FREE = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one replica would cost a generation, in tokens of a prompt.

    Args:
        cached: of its own prompt, known or taken to be.
        ahead: before it, for the replica's weight.
        memory: for the risk that it, or another for its sake, is computed twice.
    """

    cached: float
    to_compute: float
    ahead: float
    memory: float

    @property
    def total(self) -> float:
        return self.to_compute + self.ahead + self.memory


class Affinity:
    """The fewest tokens until it begins: of its prompt what is not cached, and what is before it.

    A memory that is nearly full counts too.
    """

    name = PolicyName.AFFINITY

    def share(self, one: Candidate) -> float:
        return one.weight

    def costs(self, choice: Round) -> list[float]:
        scale = _Scale(choice)
        return [scale.cost(index).total for index in range(len(choice.able))]

    def reason(self, choice: Round, index: int) -> str:
        scale, one, prompt = _Scale(choice), choice.able[index], choice.demand.prompt_tokens
        cost = scale.cost(index)
        cached = f"prefix {cost.cached:.0f} of {prompt} cached"
        if one is scale.home:
            cached = f"home of its session, {cost.cached:.0f} of {prompt} taken to be cached"
        known = one.expected_tokens is not None
        parts = [
            cached,
            f"{cost.to_compute:.0f} to compute",
            f"{cost.ahead:.0f} ahead" if known else "its load unknown",
        ]
        if one.weight != 1:
            parts.append(f"weight {one.weight:g}")
        if one.memory_used is not None and cost.memory >= 1:
            parts.append(f"{cost.memory:.0f} for memory {one.memory_used:.0%} used")
        return ", ".join(parts)


class _Scale:
    """What the costs of one choice have in common."""

    def __init__(self, choice: Round) -> None:
        self._choice = choice
        self._mean = mean_weight(choice.able)
        self.home = _home(choice.demand, choice.able)

    def cost(self, index: int) -> Cost:
        demand, one = self._choice.demand, self._choice.able[index]
        cached = float(one.cached_tokens)
        if one is self.home:
            cached = HOME * demand.prompt_tokens
        return Cost(
            cached=cached,
            to_compute=demand.prompt_tokens - cached,
            ahead=self._ahead(one),
            memory=_memory(demand, one),
        )

    def _ahead(self, one: Candidate) -> float:
        if one.expected_tokens is None:
            return UNKNOWN
        to_come = max(0, one.expected_tokens - one.pending_tokens)
        return (one.pending_tokens + DECODE * to_come) * self._mean / one.weight


def _memory(demand: Demand, one: Candidate) -> float:
    """Rises slowly up to half of the memory and steeply where little is left."""
    used = one.memory_used
    if used is None:
        return 0.0
    return MEMORY * demand.tokens * 8 * used**4 / max(LEAST_FREE, 1 - used)


def _home(demand: Demand, able: Sequence[Candidate]) -> Candidate | None:
    """Where its session lives; None where more is known than is taken to be."""
    taken = HOME * demand.prompt_tokens
    if demand.session is None or any(one.cached_tokens >= taken for one in able):
        return None
    key = key_of(demand.session)
    home = min(able, key=lambda one: draw(key, one.name, one.weight))
    return None if home.tells_blocks else home
