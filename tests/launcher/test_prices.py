"""Prices are exact, and a file that cannot be meant is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from services.launcher.prices import Prices, read_prices
from services.shared.config import BadConfig
from services.shared.request_log.reader import UsageSum

FILE = """
currency: EUR
prices:
- {model: small, input: 0.15, cached_input: "0.075", output: 0.6}
- {model: "*", input: 1, output: 1e-3}
"""


def prices_of(folder: Path, text: str) -> Prices:
    path = folder / "prices.yaml"
    path.write_text(text)
    return read_prices(path)


def used(model: str | None, prompt: int, cached: int, completion: int) -> UsageSum:
    return UsageSum(
        group="acme",
        model=model,
        outcome="finished",
        requests=1,
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
    )


def test_costs_are_exact(tmp_path: Path) -> None:
    prices = prices_of(tmp_path, FILE)
    small, other = prices.of("small"), prices.of("large")
    assert prices.currency == "EUR"
    assert small is not None
    assert other is prices.of(None)
    assert other is not None
    assert small.cost(used("small", 1_000_003, 1, 7)) == Decimal("0.150004575")
    assert other.cost(used("large", 3, 1, 1)) == Decimal("0.000003001")


def test_a_model_without_a_price_has_none(tmp_path: Path) -> None:
    only = prices_of(tmp_path, "prices: [{model: small, input: 1, output: 1}]")
    assert only.of("large") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prices: [{model: a, input: -1, output: 1}]", "prices[0].input must be between 0 and"),
        ("prices: [{model: a, input: 1, output: .nan}]", "prices[0].output must be between"),
        ("prices: [{model: a, input: 1, output: .inf}]", "prices[0].output must be between"),
        ("prices: [{model: a, input: dear, output: 1}]", "prices[0].input must be a number"),
        ("prices: [{model: a, input: true, output: 1}]", "prices[0].input must be a number"),
        ("prices: [{model: a, input: 1}]", "prices[0].output must be set"),
        ("prices: [{model: a, input: 1, output: 1, ouput: 2}]", "prices[0].ouput is unknown"),
        ("prices: [{model: '', input: 1, output: 1}]", "prices[0].model must not be empty"),
        ("prices: [a]", "prices[0].model must stand with input and output"),
        ("currency: EUR", "prices must be set"),
        ("{prices: [], currency: '\\e[1m'}", "currency must be 1 to 8 letters"),
        (
            "prices: [{model: a, input: 1, output: 1}, {model: a, input: 2, output: 1}]",
            "prices must name each model once, got 'a' twice",
        ),
    ],
)
def test_what_cannot_be_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        prices_of(tmp_path, text)
    assert said in str(caught.value)
