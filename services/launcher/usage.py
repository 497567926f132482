"""What tenants, keys or models used, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from services.launcher.prices import Prices
from services.shared.request_log.reader import Grouping, UsageSum

OUTCOMES = ("finished", "cancelled", "failed", "refused")
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(kw_only=True, slots=True)
class Usage:
    """Of one group.

    Attributes:
        requests: by outcome.
        prompt_tokens: those that were found cached included.
        cost: of what has a price.
        unpriced: models that used tokens and have no price.
    """

    group: str | None
    requests: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)
    unpriced: set[str] = field(default_factory=set)

    def add(self, used: UsageSum, prices: Prices | None) -> None:
        self.requests[used.outcome] += used.requests
        self.prompt_tokens += used.prompt_tokens
        self.cached_tokens += used.cached_tokens
        self.completion_tokens += used.completion_tokens
        if prices is None or not (used.prompt_tokens or used.completion_tokens):
            return
        price = prices.of(used.model)
        if price is None:
            self.unpriced.add(used.model or "")
        else:
            self.cost += price.cost(used)


def usages(
    sums: Iterable[UsageSum], by: Grouping, prices: Prices | None
) -> tuple[Sequence[Usage], Usage]:
    """Those of each group, days in their order and others by their tokens, and those of all."""
    groups: dict[str | None, Usage] = {}
    total = Usage(group=None)
    for one in sums:
        name = _day(one.group) if by is Grouping.DAY else one.group
        for usage in (groups.setdefault(name, Usage(group=name)), total):
            usage.add(one, prices)
    if by is Grouping.DAY:
        return sorted(groups.values(), key=lambda usage: usage.group or ""), total
    return sorted(groups.values(), key=_most_first), total


def _most_first(usage: Usage) -> tuple[int, str]:
    return -usage.prompt_tokens - usage.completion_tokens, usage.group or ""


def _day(group: str | None) -> str:
    return date.fromordinal(_EPOCH + int(group or 0)).isoformat()
