"""What tokens cost, as a YAML file tells it: exact decimal numbers, of one currency."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from services.shared.config import load
from services.shared.request_log.reader import UsageSum

EVERY_OTHER = "*"
MILLION = 10**6
MOST = Decimal(10**9)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPrice:
    """Of a million tokens each.

    Args:
        model: as callers name it; `*` is each that has no price of its own.
        input: prompt tokens that had to be computed.
        output: tokens of outputs.
        cached_input: prompt tokens that were found cached; None: as `input`.
    """

    model: str
    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model must not be empty, got ''")
        for name in ("input", "output", "cached_input"):
            price: Decimal | None = getattr(self, name)
            if price is not None and not (price.is_finite() and 0 <= price <= MOST):
                raise ValueError(f"{name} must be between 0 and {MOST}, got {price}")

    @classmethod
    def parse(cls, text: str) -> ModelPrice:
        """A price is always a mapping. Raises ValueError."""
        raise ValueError(f"model must stand with input and output, got {text!r} alone")

    def cost(self, used: UsageSum) -> Decimal:
        cached = self.input if self.cached_input is None else self.cached_input
        computed_tokens = used.prompt_tokens - used.cached_tokens
        return (
            self.input * computed_tokens
            + cached * used.cached_tokens
            + self.output * used.completion_tokens
        ) / MILLION


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What stands in the file."""

    prices: tuple[ModelPrice, ...]
    currency: str = "USD"

    def __post_init__(self) -> None:
        names = [price.model for price in self.prices]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"prices must name each model once, got {twice!r} twice")
        if not self.currency.isalpha() or len(self.currency) > 8:
            raise ValueError(f"currency must be 1 to 8 letters, got {self.currency!r}")

    def of(self, model: str | None) -> ModelPrice | None:
        by_name = {price.model: price for price in self.prices}
        return by_name.get(model or "") or by_name.get(EVERY_OTHER)


def read_prices(path: Path) -> Prices:
    """Raises BadConfig naming the file and the key at fault."""
    return load(Prices, path, {}, {})
