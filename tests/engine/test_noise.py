"""The random numbers: pure functions of their counters, and Gumbel distributed."""

from __future__ import annotations

import numpy as np

from services.engine.noise import gumbel


def uints(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64)


def test_noise_depends_on_seed_position_and_token_alone() -> None:
    tokens = np.arange(100, dtype=np.uint64)
    noise = gumbel(uints(7), uints(3), tokens)
    assert np.array_equal(noise, gumbel(uints(7), uints(3), tokens))
    assert np.array_equal(noise[40:50], gumbel(uints(7), uints(3), tokens[40:50]))
    for other in (
        gumbel(uints(8), uints(3), tokens),
        gumbel(uints(7), uints(4), tokens),
        gumbel(uints(3), uints(7), tokens),
    ):
        assert not np.isclose(noise, other).any()


def test_noise_has_the_moments_of_the_gumbel_distribution() -> None:
    noise = gumbel(uints(1), uints(0), np.arange(200_000, dtype=np.uint64))
    assert abs(noise.mean() - np.euler_gamma) < 0.01
    assert abs(noise.var() - np.pi**2 / 6) < 0.02


def test_neighbouring_seeds_and_positions_are_not_correlated() -> None:
    steps = np.arange(50_000, dtype=np.uint64)
    by_seed = gumbel(steps, uints(0), uints(5))
    by_position = gumbel(uints(0), steps, uints(5))
    for series in (by_seed, by_position):
        assert abs(np.corrcoef(series[1:], series[:-1])[0, 1]) < 0.02


def test_extreme_counters_give_finite_noise() -> None:
    ends = uints(0, 2**64 - 1)
    assert np.isfinite(gumbel(ends, ends, ends)).all()
