"""The arithmetic of a draw: the compiled kernels do what the plain way does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from services.engine.drawing import Drawing, Floats, PlainDrawing
from services.engine.fastest_drawing import fastest_drawing
from services.engine.noise import stream_keys

PLAIN = PlainDrawing()


@pytest.fixture(scope="module", params=[1, 2], ids=["serial", "parallel"])
def compiled(request: pytest.FixtureRequest) -> Drawing:
    return fastest_drawing(torch.device("cpu"), request.param)


def logits(width: int, rows: int = 40) -> torch.Tensor:
    generator = torch.Generator().manual_seed(width)
    values = torch.randn(rows, width, generator=generator) * 3
    values[:, 1::7] = -torch.inf
    return values


def drawn(drawing: Drawing, weights: Floats) -> list[int]:
    rows = np.arange(len(weights), dtype=np.uint64)
    tokens: list[int] = drawing.race(
        weights, stream_keys(rows, rows), weights.argmax(axis=1)
    ).tolist()
    return tokens


@pytest.mark.parametrize("width", [5, 128, 129, 5000])
def test_the_best_is_the_first_of_the_largest(compiled: Drawing, width: int) -> None:
    values = logits(width)
    values[3, [2, width - 1]] = 100.0
    assert compiled.best(values).tolist() == values.numpy().argmax(axis=1).tolist()
    assert PLAIN.best(values)[3] == compiled.best(values)[3] == 2


@pytest.mark.parametrize("heat", [1e-6, 0.1, 0.7, 1.0, 2.0])
def test_weights_are_likelihoods_relative_to_the_best(compiled: Drawing, heat: float) -> None:
    values = logits(1000)
    best = PLAIN.best(values)
    temperatures = np.full(len(values), heat, dtype=np.float32)
    weights = compiled.weights(values, best, temperatures)
    expected = PLAIN.weights(values, best, temperatures)
    assert np.allclose(weights, expected, rtol=1e-5, atol=1e-34)
    assert (weights[:, 1::7] == 0).all()
    assert (weights[np.arange(len(values)), best] == 1).all()


@pytest.mark.parametrize("heat", [0.1, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("width", [5, 128, 129, 5000])
def test_the_race_has_the_same_winner(compiled: Drawing, heat: float, width: int) -> None:
    values = logits(width)
    temperatures = np.full(len(values), heat, dtype=np.float32)
    weights = PLAIN.weights(values, PLAIN.best(values), temperatures)
    assert drawn(compiled, weights) == drawn(PLAIN, weights)


def test_a_token_without_weight_is_never_drawn(compiled: Drawing) -> None:
    weights = np.zeros((500, 300), dtype=np.float32)
    weights[:, 17] = 1.0
    weights[:, 200] = 0.5
    assert set(drawn(compiled, weights)) == {17, 200}


def test_shares_are_those_of_the_weights(compiled: Drawing) -> None:
    weights = np.tile(np.array([1.0, 0.5, 0.3, 0.14, 0.06], dtype=np.float32), (40_000, 1))
    shares = np.bincount(drawn(compiled, weights)) / len(weights)
    assert np.abs(shares - weights[0] / weights[0].sum()).max() < 0.01
