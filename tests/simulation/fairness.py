"""Whether tenants got their shares while all wanted more, and a light one never waited long."""

from __future__ import annotations

from collections import Counter

from tests.simulation.asked import Asked
from tests.simulation.clients import Client
from tests.simulation.judge import Judge
from tests.simulation.legs import Legs
from tests.simulation.parameters import Backlog

TOLERANCE = 0.1
WARM_UP_S = 2.0


class Fairness:
    """Judges a backlog when it is over.

    Args:
        weights: of the tenants.
        began: when clients began to ask.
    """

    def __init__(
        self, backlog: Backlog, weights: dict[str, float], began: float, judge: Judge
    ) -> None:
        self._backlog = backlog
        self._weights = weights
        self._began = began
        self._judge = judge

    def check(self, clients: list[Client], legs: Legs, ended: float) -> None:
        """Args: ended: when clients ceased to ask."""
        asked = [one for client in clients for one in client.asked if one.end == "finished"]
        self._check_shares(asked, ended)
        self._check_waits(asked, legs)

    def _check_shares(self, asked: list[Asked], ended: float) -> None:
        served: Counter[str] = Counter()
        for one in asked:
            tenant = _tenant(one)
            if tenant in self._weights and self._began + WARM_UP_S <= one.ended_at <= ended:
                served[tenant] += len(one.generation.prompt_ids) + len(one.received)
        per_weight = {name: served[name] / weight for name, weight in self._weights.items()}
        mean = sum(per_weight.values()) / len(per_weight)
        for name, tokens in per_weight.items():
            if abs(tokens / mean - 1) > TOLERANCE:
                text = f"{name} had {tokens:.0f} tokens by weight, the mean is {mean:.0f}"
                self._judge.broken("equal weights get equal tokens", text)

    def _check_waits(self, asked: list[Asked], legs: Legs) -> None:
        """A light tenant waits no longer than it takes all that ran to end."""
        light = [one for one in asked if _tenant(one) == self._backlog.light]
        longest = max(one.ended_at - legs.sent_at[one.generation.request_id] for one in asked)
        for one in light:
            name = one.generation.request_id
            wait_s = legs.sent_at[name] - one.asked_at
            if wait_s > longest:
                text = f"{name} waited {wait_s:.3f} s while others ran for {longest:.3f} s at most"
                self._judge.broken("a short request's wait is bounded", text)


def _tenant(asked: Asked) -> str | None:
    return asked.generation.quality_of_service.tenant
