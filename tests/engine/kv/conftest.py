"""What tests with many idle moments of an engine share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def quick_collections() -> Iterator[None]:
    """An idle engine collects garbage; it does not look at all that the tests' process holds."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
