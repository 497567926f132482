"""A setting in the environment reaches the services that have it, and none that would refuse it."""

from __future__ import annotations

import pytest

from services.launcher.environment import WIRING, check_environment, environment_for
from services.shared.config import BadConfig

ENVIRON = {
    "HOME": "/root",
    "KV_CACHE_SIZE": "1GB",
    "TOKENWAY_EXECUTOR__SIMULATE": "true",
    "TOKENWAY_TELEMETRY__LOG_LEVEL": "debug",
    "TOKENWAY_HTTP_PORT": "8080",
}


def test_each_service_gets_what_it_has() -> None:
    check_environment(ENVIRON)
    assert environment_for("engine", ENVIRON) == ENVIRON
    assert set(ENVIRON) - set(environment_for("router", ENVIRON)) == {"TOKENWAY_EXECUTOR__SIMULATE"}


def test_a_setting_that_no_service_has_is_named() -> None:
    with pytest.raises(BadConfig, match=r"^TOKENWAY_EXECUTOR__SIMULATED: no service has"):
        check_environment({"TOKENWAY_EXECUTOR__SIMULATED": "1"})


@pytest.mark.parametrize("name", WIRING)
def test_what_only_an_option_can_say_is_refused(name: str) -> None:
    with pytest.raises(BadConfig, match=f"^{name} speaks to one service; tokenway up takes --"):
        check_environment({name: "1"})
