"""The default way to compare replicas: what a generation has to wait for, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence

from services.router.balancing.candidate import Candidate
from services.router.balancing.policies import UNKNOWN, PolicyName, Round, mean_weight
from services.router.balancing.rendezvous import draw, key_of
from services.router.demand import Demand

COMPUTE = 1.5
"""What a token of its own prompt counts that is to be computed, of one that is before it: it delays
others too."""

FETCH = 0.1
"""What a token counts that is fetched from another replica, of one that is before it."""

DECODE = 0.3
"""What a token that is still to come counts of one that is to be computed for a prompt: tokens to
come are computed many in a step."""

HOME = 0.5
"""Share of a prompt that is taken to be cached at its session's home, if that tells no blocks."""

MEMORY = 0.02
"""What each of a generation's tokens costs, in tokens, where half of the memory is in use: as much
as to compute it where nine tenths are."""

LEAST_FREE = 0.02


class Affinity:
    """The fewest tokens until it begins: of its prompt what is not cached, and what is before it.

    What another replica computes, or has, costs little: it has to be fetched. A memory that is
    nearly full counts too.
    """

    name = PolicyName.AFFINITY

    def share(self, one: Candidate) -> float:
        return one.weight

    def costs(self, choice: Round) -> list[float]:
        demand, able = choice.demand, choice.able
        prompt_tokens, mean = demand.prompt_tokens, mean_weight(able)
        costs = [
            COMPUTE * (prompt_tokens - one.cached_tokens - one.offer.tokens)
            + FETCH * one.offer.tokens
            + _ahead(one, mean)
            + _memory(demand, one)
            for one in able
        ]
        home = _home(demand, able)
        if home is not None:
            costs[home] -= COMPUTE * (_taken_to_be_cached(demand) - able[home].cached_tokens)
        return costs

    def reason(self, choice: Round, index: int) -> str:
        demand, one = choice.demand, choice.able[index]
        cached, of = float(one.cached_tokens), f"of {demand.prompt_tokens}"
        parts = [f"prefix {cached:.0f} {of} cached"]
        if index == _home(demand, choice.able):
            cached = _taken_to_be_cached(demand)
            parts = [f"home of its session, {cached:.0f} {of} taken to be cached"]
        parts.append(f"{demand.prompt_tokens - cached - one.offer.tokens:.0f} to compute")
        ahead, memory = _ahead(one, mean_weight(choice.able)), _memory(demand, one)
        parts.append(f"{ahead:.0f} ahead" if ahead < UNKNOWN else "its load unknown")
        if one.weight != 1:
            parts.append(f"weight {one.weight:g}")
        if one.memory_used is not None and memory >= 1:
            parts.append(f"{memory:.0f} for memory {one.memory_used:.0%} used")
        return ", ".join(parts)


def _ahead(one: Candidate, mean: float) -> float:
    """Tokens before it, as many as there would be at the mean weight."""
    if one.expected_tokens is None:
        return UNKNOWN
    to_come = max(0, one.expected_tokens - one.pending_tokens)
    return (one.pending_tokens + DECODE * to_come) * mean / one.weight


def _memory(demand: Demand, one: Candidate) -> float:
    """The risk that it, or another for its sake, is computed twice.

    It rises slowly up to half of the memory and steeply where little is left.
    """
    used = one.memory_used
    if used is None:
        return 0.0
    return MEMORY * demand.tokens * 8 * used**4 / max(LEAST_FREE, 1 - used)


def _taken_to_be_cached(demand: Demand) -> float:
    return HOME * demand.prompt_tokens


def _home(demand: Demand, able: Sequence[Candidate]) -> int | None:
    """The place of the replica where its session lives.

    None where more is known to be cached, or comes from elsewhere.
    """
    if demand.session is None or all(one.tells_blocks for one in able):
        return None
    taken = _taken_to_be_cached(demand)
    if any(one.cached_tokens >= taken for one in able):
        return None
    key = key_of(demand.session)
    home = min(range(len(able)), key=lambda place: draw(key, able[place].name, able[place].weight))
    return None if able[home].tells_blocks or able[home].offer.source else home
