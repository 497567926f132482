"""Each named policy can be chosen, and what makes no sense is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.router.balancing.balancing_settings import BalancingSettings
from services.router.balancing.policies import PolicyName
from services.router.balancing.versions import VersionShare
from services.shared.config import BadConfig, load


@pytest.mark.parametrize("name", PolicyName)
def test_each_policy_is_the_one_that_was_named(name: PolicyName) -> None:
    assert BalancingSettings(policy=name).comparison(b"salt").name is name


def test_versions_are_texts_or_mappings() -> None:
    environ = {"TOKENWAY_VERSIONS": "abc=9, def"}
    assert load(BalancingSettings, None, environ, {}).versions == (
        VersionShare(fingerprint="abc", weight=9),
        VersionShare(fingerprint="def"),
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("policy: fastest", "policy must be one of affinity, round_robin, least_tokens, power_of_"),
        ("versions: [a=1, a=2]", "versions must differ, got a, a"),
        ("versions: [a=0]", "versions must have one of a weight above 0, got none"),
        ("versions: [{weight: 1}]", "versions[0].fingerprint must be set"),
        ("long_prompt_tokens: 0", "long_prompt_tokens must be between 1 and 16777216, got 0"),
    ],
)
def test_a_fault_names_key_limit_and_value(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "balancing.yaml"
    path.write_text(text)
    with pytest.raises(BadConfig) as caught:
        load(BalancingSettings, path, {}, {})
    assert fault in str(caught.value)
