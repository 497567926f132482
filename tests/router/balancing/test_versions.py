"""Which versions serve beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.balancing.versions import Versions, VersionShare
from services.router.status import Identity

FLEET = Identity(model="m", version="abc1", tokenizer_fingerprint="t", layout_id="one")


def test_without_shares_all_have_the_version_of_the_fleet() -> None:
    versions = Versions()
    assert versions.may_lead(FLEET)
    assert versions.may_join(replace(FLEET, layout_id="another"), FLEET)
    assert not versions.may_join(replace(FLEET, version="abc2"), FLEET)


def test_with_shares_the_listed_ones_serve_and_no_other() -> None:
    versions = Versions([VersionShare.parse("abc1=9"), VersionShare.parse("def")])
    other = replace(FLEET, version="def7")
    assert versions.may_lead(other)
    assert versions.may_join(other, FLEET)
    assert not versions.may_lead(replace(FLEET, version="xyz"))
    assert not versions.may_join(replace(FLEET, version="xyz"), FLEET)


@pytest.mark.parametrize(
    "other", [replace(FLEET, model="other"), replace(FLEET, tokenizer_fingerprint="other")]
)
def test_another_model_or_tokenizer_joins_under_no_version(other: Identity) -> None:
    for versions in (Versions(), Versions([VersionShare.parse("abc")])):
        assert not versions.may_join(other, FLEET)


def test_the_longest_fingerprint_counts() -> None:
    versions = Versions([VersionShare.parse("a=1"), VersionShare.parse("abc=2")])
    share = versions.share("abcdef")
    assert share is not None
    assert share.weight == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("=1", "fingerprint must not be empty"),
        ("a=x", "weight must be a number, got x"),
        ("a=-1", "weight must be between 0 and 1000.0, got -1.0"),
        ("a=nan", "weight must be between 0 and 1000.0, got nan"),
    ],
)
def test_a_faulty_share_is_named(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        VersionShare.parse(text)
