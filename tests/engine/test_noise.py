"""The random numbers: pure functions of their counters, and uniform."""

from __future__ import annotations

import numpy as np

from services.engine.noise import stream_keys, uniform

TOKENS = np.arange(100, dtype=np.uint64)


def key(seed: int, position: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    return stream_keys(np.array([seed], dtype=np.uint64), np.array([position], dtype=np.uint64))


def test_a_number_depends_on_seed_position_and_token_alone() -> None:
    noise = uniform(key(7, 3), TOKENS)
    assert np.array_equal(noise, uniform(key(7, 3), TOKENS))
    assert np.array_equal(noise[40:50], uniform(key(7, 3), TOKENS[40:50]))
    for other in (key(8, 3), key(7, 4), key(3, 7)):
        assert not np.isclose(noise, uniform(other, TOKENS), atol=1e-6).any()


def test_numbers_are_uniform() -> None:
    noise = uniform(key(1, 0), np.arange(200_000, dtype=np.uint64))
    shares = np.histogram(noise, bins=20, range=(0, 1))[0] / len(noise)
    assert np.abs(shares - 0.05).max() < 0.003


def test_neighbouring_seeds_and_positions_are_not_correlated() -> None:
    steps = np.arange(50_000, dtype=np.uint64)
    zeros = np.zeros_like(steps)
    for keys in (stream_keys(steps, zeros), stream_keys(zeros, steps)):
        series = uniform(keys, np.full_like(steps, 5))
        assert abs(np.corrcoef(series[1:], series[:-1])[0, 1]) < 0.02


def test_extreme_counters_stay_inside_the_interval() -> None:
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    noise = uniform(stream_keys(ends, ends), ends)
    assert ((noise > 0) & (noise < 1)).all()
