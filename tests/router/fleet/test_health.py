"""What silence, missing progress, failures and lies make of a replica."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.router.fleet.health import Health, HealthRules
from services.router.fleet.replica import Replica
from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import Failed
from services.shared.stream.load import DeviceMemory, Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.scripted_source import ScriptedSource

RULES = HealthRules()
READY = Load(state=ReplicaState.READY)
BROKEN = Failed(code=Code.INTERNAL, message="internal error")


def health() -> Health:
    """Of a replica that came up and was heard at 100."""
    one = Health(RULES)
    one.came_up(100)
    one.hear(READY, 100)
    return one


def replica() -> Replica:
    """One that is up since 100 and described, outside of a fleet."""
    one = Replica("a", ScriptedSource())
    one.tell_load(READY, 100)
    one.identity = IDENTITY
    return one


def status(one: Health, now: float) -> Status:
    return one.verdict(now).status


def test_silence_degrades_and_then_is_stuck() -> None:
    one = health()
    assert status(one, 102) is Status.READY
    assert status(one, 102.1) is Status.DEGRADED
    assert one.verdict(102.1).reason == "silent for 2 s"
    assert status(one, 105) is Status.DEGRADED
    assert status(one, 105.1) is Status.STUCK
    assert one.verdict(105.1).reason == "silent for 5 s"


def test_a_word_ends_the_silence() -> None:
    one = health()
    assert status(one, 110) is Status.STUCK
    one.hear(READY, 110)
    assert status(one, 110) is Status.READY


def test_work_without_a_step_degrades_and_then_is_stuck_however_much_it_talks() -> None:
    one = health()
    for age_ms, expected in ((1900, Status.READY), (2500, Status.DEGRADED), (5500, Status.STUCK)):
        one.hear(replace(READY, running=1, progress_age_ms=age_ms), 110)
        assert status(one, 110) is expected
    assert one.verdict(110).reason == "no step with work waiting for 5 s"


def test_the_age_of_progress_grows_after_it_was_told() -> None:
    one = health()
    one.hear(replace(READY, running=1, progress_age_ms=4500), 110)
    assert status(one, 110.4) is Status.DEGRADED
    assert status(one, 110.6) is Status.STUCK


def test_a_load_is_unknown_when_it_is_old() -> None:
    one = replica()
    one.outstanding_tokens = 7
    assert one.expected_tokens == 7
    one.verdict(103)
    assert one.expected_tokens == 7
    one.verdict(103.1)
    assert one.expected_tokens is None
    one.tell_load(READY, 104)
    assert one.expected_tokens == 7


@pytest.mark.parametrize(
    "lie",
    [
        replace(READY, free_blocks=8, cached_blocks=3, total_blocks=10),
        replace(READY, running=9, slots=8),
        replace(READY, device_memory=DeviceMemory(total_bytes=9, used_bytes=10, free_bytes=0)),
        replace(READY, device_memory=DeviceMemory(total_bytes=9, used_bytes=0, free_bytes=10)),
    ],
)
def test_a_load_that_cannot_be_is_unknown(lie: Load) -> None:
    one = replica()
    one.tell_load(lie, 100)
    assert one.health.complaint
    assert one.expected_tokens is None
    assert one.memory_used is None
    assert one.verdict(100).status is Status.READY
    one.tell_load(READY, 101)
    assert one.health.complaint is None
    assert one.expected_tokens == 0


@pytest.mark.parametrize(
    "true",
    [
        replace(READY, free_blocks=7, cached_blocks=3, total_blocks=10),
        replace(READY, running=8, slots=8),
        replace(READY, running=8),
        replace(READY, device_memory=DeviceMemory(total_bytes=9, used_bytes=9, free_bytes=0)),
    ],
)
def test_a_load_at_its_bounds_is_known(true: Load) -> None:
    one = replica()
    one.tell_load(true, 100)
    assert one.expected_tokens == 0


def test_failures_in_a_row_eject_and_a_success_breaks_the_row() -> None:
    one = replica()
    for _ in range(2):
        one.tell_failure(101, BROKEN)
    one.tell_success(101)
    for _ in range(2):
        one.tell_failure(101, BROKEN)
    assert one.verdict(101).status is Status.READY
    one.tell_failure(101, BROKEN)
    assert one.verdict(101).status is Status.EJECTED
    assert one.verdict(101).reason == "failures; its time is not over"
    one.tell_load(READY, 106)
    assert one.verdict(106).reason == "failures; a probe decides"


def test_slow_first_tokens_in_a_row_eject_though_they_end_well() -> None:
    one = replica()
    for waited_s in (31, 31, 29, 31, 31):
        one.tell_first_token(101, waited_s)
        one.tell_success(101)
    assert one.verdict(101).status is Status.READY
    one.tell_first_token(101, 31)
    assert one.verdict(101).status is Status.EJECTED


@pytest.mark.parametrize("code", set(Code) - {2, 13, 14, 15})
def test_what_is_the_caller_s_fault_or_a_full_house_is_no_strike(code: Code) -> None:
    one = replica()
    for _ in range(9):
        one.tell_failure(101, Failed(code=code, message=""))
    assert one.verdict(101).status is Status.READY


@pytest.mark.parametrize("load", [None, Load(state=ReplicaState.DRAINING)])
def test_what_a_lost_session_or_a_drain_breaks_off_is_no_strike(load: Load | None) -> None:
    one = replica()
    one.tell_load(load, 110)
    for _ in range(9):
        one.tell_failure(110, Failed(code=Code.UNAVAILABLE, message="", retryable=True))
    assert not one.health.ejection.until


def test_sessions_that_end_within_seconds_eject_and_one_that_lasts_breaks_the_row() -> None:
    one = replica()
    now = 100.0
    for lasted in (1, 1, 6, 1, 1):
        now += lasted
        one.tell_load(None, now)
        one.tell_load(READY, now)
    one.identity = IDENTITY
    assert one.verdict(now).status is Status.READY
    one.tell_success(now)
    one.tell_load(None, now + 1)
    one.tell_load(READY, now + 1)
    one.identity = IDENTITY
    assert one.verdict(now + 1).status is Status.EJECTED


def test_a_failed_probe_degrades_until_something_succeeds() -> None:
    one = replica()
    one.tell_probe(101, passed=False)
    assert one.verdict(101).status is Status.DEGRADED
    assert one.verdict(101).reason == "failed its last probe"
    one.tell_probe(101, passed=True)
    assert one.verdict(101).status is Status.READY
    one.tell_probe(101, passed=False)
    one.tell_first_token(101, 1)
    assert one.verdict(101).status is Status.READY


def test_a_passed_probe_breaks_no_row_of_failures() -> None:
    one = replica()
    for _ in range(3):
        one.tell_failure(101, BROKEN)
        one.tell_probe(101, passed=True)
    assert one.verdict(101).status is Status.EJECTED


def test_an_excuse_does_not_reach_beyond_now() -> None:
    one = health()
    one.excuse(103, 60)
    assert one.heard_at == 103


def test_a_stuck_replica_is_stuck_whether_it_is_ejected_or_not() -> None:
    one = replica()
    for _ in range(3):
        one.tell_failure(100, BROKEN)
    assert one.verdict(110).status is Status.STUCK


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("degraded_after_s", 1.0, "degraded_after_s must be >= 1.5, got 1.0"),
        ("stuck_after_s", 1.0, "stuck_after_s must be >= 2.0, got 1.0"),
        ("load_valid_s", 1.0, "load_valid_s must be >= 1.5, got 1.0"),
        ("slow_first_token_s", 0.0, "slow_first_token_s must be between 0.001 and 3600, got 0.0"),
        ("steady_after_s", -1.0, "steady_after_s must be between 0 and 3600, got -1.0"),
        ("ejection_threshold", 0, "ejection_threshold must be between 1 and 1000, got 0"),
        ("ejection_s", 0.0, "ejection_s must be between 0.1 and 3600, got 0.0"),
        ("max_ejection_s", 1.0, "max_ejection_s must be between 5.0 and 86400, got 1.0"),
        ("max_ejected_share", 1.1, "max_ejected_share must be between 0 and 1, got 1.1"),
        ("probe_interval_s", 0.1, "probe_interval_s must be between 0.5 and 3600, got 0.1"),
        ("probe_timeout_s", 0.0, "probe_timeout_s must be between 0.1 and 3600, got 0.0"),
    ],
)
def test_rules_out_of_bounds_are_named(key: str, value: float, message: str) -> None:
    given: dict[str, Any] = {key: value}
    with pytest.raises(ValueError, match=f"^{message}$"):
        HealthRules(**given)
