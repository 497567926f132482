"""What an operator may say of the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.router.demand import Lane
from services.router.settings import RouterSettings
from services.shared.config import BadConfig, load


def settings(path: Path, queue: str, environ: dict[str, str] | None = None) -> RouterSettings:
    path.write_text(f"replicas: ['127.0.0.1:1']\nservice: {{queue: {queue}}}\n")
    return load(RouterSettings, path, environ or {}, {})


def test_windows_and_weights_reach_the_rules(tmp_path: Path) -> None:
    text = (
        "{tenant_weights: [a=3, {tenant: b, weight: 0.5}], long_window_tokens: 7, max_waiting: 5}"
    )
    queue = settings(tmp_path / "r.yaml", text).service.queue
    assert queue.admission().tenant_weights == {"a": 3.0, "b": 0.5}
    assert queue.admission().max_waiting == 5
    assert queue.room().window == {Lane.SHORT: 8192, Lane.LONG: 7}


def test_weights_may_stand_in_the_environment(tmp_path: Path) -> None:
    environ = {"TOKENWAY_SERVICE__QUEUE__TENANT_WEIGHTS": "a=3, b=x=2"}
    queue = settings(tmp_path / "r.yaml", "{}", environ).service.queue
    assert queue.admission().tenant_weights == {"a": 3.0, "b=x": 2.0}


@pytest.mark.parametrize(
    ("queue", "fault"),
    [
        ("{max_waiting: -1}", "max_waiting must be between 0 and 1000000, got -1"),
        ("{tenant_weights: [a]}", "weight must be given as tenant=weight, got 'a'"),
        ("{tenant_weights: [a=0]}", r"weight must be between 0.001 and 1000.0, got 0.0"),
        ("{tenant_weights: [a=1, a=2]}", "tenant_weights must name each tenant once, got a, a"),
        ("{short_window_tokens: 0}", "short_window_tokens must be >= 1, got 0"),
        ("{slots: 0}", "slots must be between 1 and 65536, got 0"),
        ("{wait_for_replica_s: 3601}", "wait_for_replica_s must be between 0 and 3600, got 3601"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, queue: str, fault: str) -> None:
    with pytest.raises(BadConfig, match=fault):
        settings(tmp_path / "r.yaml", queue)
