"""Which keys are taken, and what is told of those that are not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from services.shared.access.api_key import ApiKey, digest_of
from services.shared.access.key_record import KeyRecord
from services.shared.access.key_ring import KeyRing
from services.shared.access.refused import Refused

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = ApiKey.new()
RECORD = KeyRecord(
    key_id=KEY.key_id, digest=digest_of(KEY.text), tenant="acme", name="", created=NOW
)


def cause(record: KeyRecord, text: str = KEY.text) -> tuple[str, str | None]:
    with pytest.raises(Refused) as caught:
        KeyRing([record]).caller(text, NOW)
    return caught.value.cause, caught.value.key_id


def test_a_key_tells_its_tenant_and_its_name() -> None:
    caller = KeyRing([RECORD]).caller(KEY.text, NOW)
    assert (caller.tenant, caller.key_id) == ("acme", KEY.key_id)


def test_a_key_counts_until_it_expires() -> None:
    moment = replace(RECORD, expires=NOW + timedelta(seconds=1))
    assert KeyRing([moment]).caller(KEY.text, NOW).tenant == "acme"
    assert cause(replace(RECORD, expires=NOW)) == ("expired key", KEY.key_id)


def test_a_revoked_key_is_revoked_whatever_its_end() -> None:
    gone = replace(RECORD, revoked=NOW, expires=NOW + timedelta(days=1))
    assert cause(gone) == ("revoked key", KEY.key_id)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ApiKey.new().text, "unknown key"),
        (KEY.text[:-1], "unknown key"),
        (KEY.text + "x", "unknown key"),
        (KEY.key_id, "unknown key"),
        ("tw_' OR 1=1 --", "unknown key"),
        ("tw_\0\n\r", "unknown key"),
        ("", "no key of ours"),
        ("sk-x", "no key of ours"),
        ("tw_" + "x" * 1_000_000, "no key of ours"),
    ],
    ids=("another", "shorter", "longer", "name", "sql", "control", "empty", "foreign", "huge"),
)
def test_other_text_is_no_key_and_its_name_is_not_told(text: str, why: str) -> None:
    assert cause(RECORD, text) == (why, None)
