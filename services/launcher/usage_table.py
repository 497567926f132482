"""Usage for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from services.launcher.prices import Prices
from services.launcher.usage import OUTCOMES, Usage
from services.shared.plain_text import plain
from services.shared.request_log.reader import Grouping

MAX_NAME = 64
_COUNTS = ("prompt tokens", "cached", "completion tokens")


def usage_table(
    groups: Sequence[Usage], total: Usage, by: Grouping, prices: Prices | None
) -> RenderableType:
    """A line for each group and one for all; below, models without a price."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(by.value, no_wrap=True)
    money = [] if prices is None else [prices.currency]
    for name in (*OUTCOMES, *_COUNTS, *money):
        table.add_column(name, justify="right", no_wrap=True)
    for usage in groups:
        name = "-" if usage.group is None else plain(usage.group, MAX_NAME)
        table.add_row(Text(name), *_cells(usage, prices))
    table.add_section()
    table.add_row("all", *_cells(total, prices))
    if not total.unpriced:
        return table
    names = ", ".join(plain(name, MAX_NAME) for name in sorted(total.unpriced))
    return Group(table, Text(f"without a price, and not in the sums: {names}"))


def _cells(usage: Usage, prices: Prices | None) -> list[str]:
    counts = [usage.requests[outcome] for outcome in OUTCOMES]
    counts += [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens]
    money = [] if prices is None else [f"{usage.cost:,.4f}"]
    return [*(f"{count:,}" for count in counts), *money]


def usage_json(groups: Sequence[Usage], total: Usage, by: Grouping, prices: Prices | None) -> str:
    """Costs are decimal numbers in text, exact."""
    currency = {} if prices is None else {"currency": prices.currency}
    told = {
        "by": by.value,
        **currency,
        "usage": [{by.value: usage.group, **_told(usage, prices)} for usage in groups],
        "total": _told(total, prices),
    }
    return json.dumps(told, indent=2)


def _told(usage: Usage, prices: Prices | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "requests": {outcome: usage.requests[outcome] for outcome in OUTCOMES},
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    if prices is not None:
        told |= {"cost": f"{usage.cost:f}", "unpriced_models": sorted(usage.unpriced)}
    return told
