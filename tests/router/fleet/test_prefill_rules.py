"""Bounds of the settings of prefill replicas."""

from __future__ import annotations

import pytest

from services.router.fleet.prefill_rules import MAX_TOKENS, PrefillRules


@pytest.mark.parametrize("field", ["threshold_tokens", "peer_tokens"])
@pytest.mark.parametrize("value", [-1, MAX_TOKENS + 1])
def test_what_is_out_of_bounds_is_refused_by_name_and_value(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"{field} must be .*, got {value}"):
        PrefillRules(**{field: value})


def test_0_is_never() -> None:
    assert PrefillRules(threshold_tokens=0, peer_tokens=0).threshold_tokens == 0
