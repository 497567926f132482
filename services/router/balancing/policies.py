"""Plain ways to compare replicas, each with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Protocol

from services.router.balancing.candidate import Candidate
from services.router.balancing.rendezvous import draw, key_of
from services.router.demand import Demand

UNKNOWN = 1e12
"""Tokens before a generation where nobody can tell: more than at any replica that can."""


class PolicyName(StrEnum):
    """A policy as settings name it."""

    AFFINITY = "affinity"
    ROUND_ROBIN = "round_robin"
    LEAST_TOKENS = "least_tokens"
    POWER_OF_TWO = "power_of_two"
    WEIGHTED = "weighted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """Replicas between which a generation has the choice.

    Args:
        number: choices that were made before.
    """

    demand: Demand
    able: Sequence[Candidate]
    number: int


class Policy(Protocol):
    """Compares replicas; of those with equal cost the one that had least of its share is chosen."""

    name: PolicyName

    def share(self, one: Candidate) -> float:
        """What its turns are counted by."""

    def costs(self, choice: Round) -> list[float]:
        """What each would cost, in tokens where it counts tokens; infinite for one not offered."""

    def reason(self, choice: Round, index: int) -> str:
        """How the cost of one comes about; names no replica, for callers read it."""


class RoundRobin:
    """Each in turn, whatever its weight and load."""

    name = PolicyName.ROUND_ROBIN

    def share(self, one: Candidate) -> float:
        del one
        return 1.0

    def costs(self, choice: Round) -> list[float]:
        return [0.0] * len(choice.able)

    def reason(self, choice: Round, index: int) -> str:
        del choice, index
        return "next in turn"


class Weighted:
    """Each in turn, as often as it weighs, whatever its load."""

    name = PolicyName.WEIGHTED

    def share(self, one: Candidate) -> float:
        return one.weight

    def costs(self, choice: Round) -> list[float]:
        return [0.0] * len(choice.able)

    def reason(self, choice: Round, index: int) -> str:
        return f"next in turn by weight {choice.able[index].weight:g}"


class LeastTokens:
    """The fewest tokens before it for its weight."""

    name = PolicyName.LEAST_TOKENS

    def share(self, one: Candidate) -> float:
        return one.weight

    def costs(self, choice: Round) -> list[float]:
        return _tokens_ahead(choice.able)

    def reason(self, choice: Round, index: int) -> str:
        return f"fewest outstanding tokens, {_told(choice.able[index])}"


class PowerOfTwo:
    """The one with fewer tokens before it of two that are drawn by weight.

    Several routers that know the same loads do not all run to the same replica (Mitzenmacher 2001).

    Args:
        salt: makes the draws of one router differ from another's.
    """

    name = PolicyName.POWER_OF_TWO

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    def share(self, one: Candidate) -> float:
        return one.weight

    def costs(self, choice: Round) -> list[float]:
        """Infinite for those that were not drawn."""
        key = key_of((self._salt, choice.number.to_bytes(8, "little")))
        draws = [draw(key, one.name, one.weight) for one in choice.able]
        last = sorted(draws)[:2][-1]
        ahead = zip(_tokens_ahead(choice.able), draws, strict=True)
        return [tokens if drawn <= last else inf for tokens, drawn in ahead]

    def reason(self, choice: Round, index: int) -> str:
        if self.costs(choice)[index] == inf:
            return "not drawn"
        return f"fewest outstanding tokens of two drawn, {_told(choice.able[index])}"


def mean_weight(able: Sequence[Candidate]) -> float:
    return sum(one.weight for one in able) / len(able)


def _tokens_ahead(able: Sequence[Candidate]) -> list[float]:
    """Tokens before a new generation, as many as there would be at the mean weight."""
    mean = mean_weight(able)
    return [
        UNKNOWN if one.expected_tokens is None else one.expected_tokens * mean / one.weight
        for one in able
    ]


def _told(one: Candidate) -> str:
    return "unknown" if one.expected_tokens is None else str(one.expected_tokens)
